import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRoute, to } from "../src/router";

test("addresses lead where they came from", () => {
  const { page, argument, query } = parseRoute(to("gpu", "s0/gpu1", { span: "1h", empty: "" }));
  assert.deepEqual([page, argument, [...query]], ["gpu", "s0/gpu1", [["span", "1h"]]]);
  assert.deepEqual([parseRoute("").page, parseRoute("#/job/7").argument, parseRoute("#/gpu/50%").argument], ["", "7", "50%"]);
});
