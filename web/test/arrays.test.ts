import assert from "node:assert/strict";
import { test } from "node:test";
import { arraysOf, listed } from "../src/lib/arrays";

const job = (id: number, array?: number) => ({ id, array: array === undefined ? null : { array, index: id - array } });
const jobs = [job(1), job(2, 2), job(9), job(3, 2), job(5, 5)];

test("jobs of an array are one row at the place of the first; a single one stays as it is", () => {
  const rows = listed(jobs, true);
  assert.deepEqual(
    rows.map(({ row, jobs: number }) => [row.id, number]),
    [
      [1, 1],
      [2, 2],
      [9, 1],
      [5, 1],
    ],
  );
  assert.deepEqual(arraysOf(rows), [2]);
  assert.equal(listed(jobs, false).length, jobs.length);
});
