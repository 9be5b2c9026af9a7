import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryFrom, quoted, secondsFrom, wordsFrom } from "../src/lib/parse";
import { bodyFrom, type Filled, problemsOf } from "../src/lib/submission";

test("memory and spans are read as people write them, and nothing else is", () => {
  assert.deepEqual(["12GiB", "800", "1.5 g", "2TiB", "12 apples", ""].map(memoryFrom), [
    12_288,
    undefined,
    1536,
    2_097_152,
    undefined,
    undefined,
  ]);
  assert.deepEqual(["12h", "90", "1h 30min", "2d", "soon", "-3h"].map(secondsFrom), [43_200, 90, 5400, 172_800, undefined, undefined]);
});

test("a command line is partitioned into words as a shell cuts it, and put together again", () => {
  const line = String.raw`python train.py --name 'a b' "c \"d\" $e" f\ g ''`;
  const words = ["python", "train.py", "--name", "a b", 'c "d" $e', "f g", ""];
  assert.deepEqual(wordsFrom(line), words);
  assert.deepEqual(wordsFrom(quoted(["it's", "a b", "plain"])), ["it's", "a b", "plain"]);
  assert.equal(wordsFrom("echo 'open"), undefined);
  assert.deepEqual(wordsFrom("  "), []);
});

const filled: Filled = {
  command: "python train.py",
  name: " ",
  directory: "/work",
  gpus: "2",
  memory: "4GiB",
  priority: "-1",
  limit: "",
  shell: false,
  exclusive: false,
  hold: true,
};

test("a form becomes a request in which nothing is said that was left open", () => {
  const { job } = bodyFrom(filled);
  assert.deepEqual(job.command, { program: ["python", "train.py"] });
  assert.deepEqual(job.resources, { gpus: 2, exclusive: false, memory: 4096 });
  assert.deepEqual(job.schedule, { priority: -1, hold: true });
  assert.equal("name" in job, false);
  assert.deepEqual(bodyFrom({ ...filled, shell: true }).job.command, { script: { text: "#!/bin/sh\npython train.py\n" } });
});

test("each field that cannot be read has its own message", () => {
  assert.deepEqual(problemsOf(filled), {});
  const wrong = { ...filled, command: "echo '", directory: "", gpus: "", memory: "much", limit: "soon", priority: "1.5" };
  assert.deepEqual(Object.keys(problemsOf(wrong)).sort(), ["command", "directory", "gpus", "limit", "memory", "priority"]);
  assert.match(problemsOf({ ...filled, directory: " " }).directory ?? "", /directory in which the job runs/);
  assert.match(problemsOf({ ...filled, directory: "here" }).directory ?? "", /begins with \//);
  assert.match(problemsOf({ ...filled, memory: "7" }).memory ?? "", /unit/);
  assert.equal(problemsOf({ ...filled, shell: true, command: "echo 'it" }).command, undefined, "a shell reads a script");
});
