import assert from "node:assert/strict";
import { test } from "node:test";
import { tick } from "../src/lib/time";

test("marks less than a minute apart have seconds", () => {
  const at = new Date(2026, 2, 1, 22, 12, 30);
  assert.deepEqual([tick(at), tick(at, true)], ["22:12", "22:12:30"]);
});
