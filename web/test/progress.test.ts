import assert from "node:assert/strict";
import { test } from "node:test";
import { progressOf } from "../src/lib/progress";

test("the time left is the predicted one, or else follows from the progress", () => {
  assert.deepEqual(progressOf({ progress: 0.25, elapsed: 100, predicted: 250 }), { share: 0.25, left: 250 });
  assert.deepEqual(progressOf({ progress: 0.25, elapsed: 100 }), { share: 0.25, left: 300 });
  assert.deepEqual(progressOf({ progress: 0, elapsed: 100 }), { share: 0 });
  assert.deepEqual(progressOf({ progress: 1, elapsed: 100 }), { share: 1, left: 0 });
  assert.deepEqual(progressOf({ progress: null, elapsed: 100, predicted: 60 }), { left: 60 });
  assert.deepEqual(progressOf({ progress: null, elapsed: 200 }), {});
});
