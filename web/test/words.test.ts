import assert from "node:assert/strict";
import { test } from "node:test";
import { endingTone } from "../src/lib/colour";
import { endingBrief, endingWords, explanation, readable } from "../src/lib/words";
import { parseRoute, to } from "../src/router";

test("endings are words, whatever they hold", () => {
  const endings = [
    "out_of_memory",
    { failed: { code: 3 } },
    { could_not_start: { reason: "no such folder" } },
    { dependency_failed: { on: 4 } },
  ];
  const words = endings.map(endingWords);
  assert.deepEqual(words, ["out of memory", "failed with exit code 3", "could not start: no such folder", "dependency failed (job 4)"]);
  assert.deepEqual(endings.map(endingBrief), ["out of memory", "exit code 3", "could not start", "dependency failed"]);
  assert.deepEqual([...words, "succeeded", "cancelled"].map(endingTone), ["memory", "bad", "bad", "bad", "good", "neutral"]);
});

test("an explanation has a reason and what each GPU says", () => {
  const text = [
    "job 11 waits behind job 6; 1 ahead of it",
    "  s0/gpu0 has 19968 MiB available, 37888 MiB needed",
    "  s0/gpu2 is reserved for job 6 from 7729.828 s",
    "          has 30208 MiB available, 37888 MiB needed",
  ].join("\n");
  assert.deepEqual(explanation(text), {
    reason: "job 11 waits behind job 6; 1 ahead of it",
    answers: [
      { device: "s0/gpu0", says: ["has 19.5 GiB available, 37.0 GiB needed"] },
      { device: "s0/gpu2", says: ["is reserved for job 6", "has 29.5 GiB available, 37.0 GiB needed"] },
    ],
  });
  assert.equal(readable("s0/gpu3 is drained by ada"), "gpu3 is drained by ada");
  assert.equal(readable("job 3 grows, and memory is full at 7729.828 s"), "job 3 grows, and memory is full soon");
});

test("addresses lead where they came from", () => {
  const { page, argument, query } = parseRoute(to("gpu", "s0/gpu1", { span: "1h", empty: "" }));
  assert.deepEqual([page, argument, [...query]], ["gpu", "s0/gpu1", [["span", "1h"]]]);
  assert.deepEqual([parseRoute("").page, parseRoute("#/job/7").argument, parseRoute("#/gpu/50%").argument], ["", "7", "50%"]);
});
