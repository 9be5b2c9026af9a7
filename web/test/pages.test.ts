import assert from "node:assert/strict";
import { test } from "node:test";
import { merged, renewed } from "../src/lib/pages";

const rows = (...ids: number[]) => ids.map(id => ({ id, page: "known" }));
const ids = (list: readonly { id: number }[]) => list.map(({ id }) => id);

test("pages are one list, in which the last page counts", () => {
  assert.deepEqual(merged(rows(5, 4), [{ id: 4, page: "new" }], rows(3)), [...rows(5), { id: 4, page: "new" }, ...rows(3)]);
});

test("what new rows push off the latest page stays", () => {
  assert.deepEqual(ids(renewed(rows(6, 5, 4, 3, 2), rows(8, 7, 6), 3)), [8, 7, 6, 5, 4, 3, 2]);
  assert.deepEqual(ids(renewed(rows(6, 5, 4, 3, 2), rows(7, 6, 4), 3)), [7, 6, 4, 3, 2], "what is no longer as asked for does not");
});

test("no list has a gap", () => {
  assert.deepEqual(ids(renewed(rows(6, 5, 4), rows(20, 19, 18), 3)), [20, 19, 18]);
  assert.deepEqual(ids(renewed(rows(6, 5, 4), rows(6), 3)), [6], "a page that is not full is all there is");
  assert.deepEqual(ids(renewed(rows(6, 5, 4), [], 3)), []);
});
