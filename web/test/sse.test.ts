import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser, type ServerEvent } from "../src/api/sse";

function parsed(...pieces: string[]): ServerEvent[] {
  const events: ServerEvent[] = [];
  const parser = new EventParser(event => events.push(event));
  for (const piece of pieces) parser.add(piece);
  return events;
}

const TEXT = 'id: 7\nevent: job\ndata: {"job":1}\n\n: still here\n\nevent: gpus\ndata: a\ndata: b\n\n';
const EVENTS = [
  { id: "7", event: "job", data: '{"job":1}' },
  { id: null, event: "gpus", data: "a\nb" },
];

test("events are read, comments are not", () => {
  assert.deepEqual(parsed(TEXT), EVENTS);
});

test("it does not matter where the stream is cut", () => {
  for (const text of [TEXT, TEXT.replaceAll("\n", "\r\n")]) {
    for (let cut = 0; cut <= text.length; cut += 1) assert.deepEqual(parsed(text.slice(0, cut), text.slice(cut)), EVENTS, `cut at ${cut}`);
    assert.deepEqual(parsed(...text), EVENTS);
  }
});
