import assert from "node:assert/strict";
import { test } from "node:test";
import { LogTail, plain } from "../src/lib/log";

test("what a terminal would act on is not shown", () => {
  assert.equal(plain("\u001b[1;32mdone\u001b[0m\r"), "done");
  assert.equal(plain("10 %\r50 %\r100 %"), "100 %");
  assert.equal(plain("\u001b]0;title\u0007a\u0007b\tc"), "ab\tc");
});

test("lines may come in pieces, and the last are kept", () => {
  const tail = new LogTail(2);
  for (const piece of ["one\ntw", "o\nthr", "ee\nfo"]) tail.add(piece);
  assert.deepEqual([tail.lines, tail.rest, tail.dropped], [["two", "three"], "fo", 1]);
});

test("no line grows for ever", () => {
  const tail = new LogTail(10, 5);
  tail.add("123456789\n");
  assert.deepEqual(tail.lines, ["12345 …"]);
  for (let number = 0; number < 1000; number += 1) tail.add(`\r${number} %`);
  assert.equal(tail.rest, "999 %");
});
