import assert from "node:assert/strict";
import { test } from "node:test";
import { progressOf } from "../src/lib/progress";

test("the time left follows from the progress, or else from the expected run time", () => {
  assert.deepEqual(progressOf({ progress: 0.25, elapsed: 100, expected: 9 }), { share: 0.25, left: 300 });
  assert.deepEqual(progressOf({ progress: 0, elapsed: 100 }), { share: 0 });
  assert.deepEqual(progressOf({ progress: 1, elapsed: 100 }), { share: 1, left: 0 });
  assert.deepEqual(progressOf({ progress: null, elapsed: 100, expected: 160 }), { left: 60 });
  assert.deepEqual(progressOf({ progress: null, elapsed: 200, expected: 160 }), {}, "longer than expected");
});
