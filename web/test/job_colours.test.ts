import assert from "node:assert/strict";
import { test } from "node:test";
import { JOB_COLOURS, type JobColours, onGpus, overTime, withColours } from "../src/lib/job_colours";

const range = (from: number, length: number) => Array.from({ length }, (_, place) => from + place);
const different = (colours: JobColours, jobs: number[]) => new Set(jobs.map(job => colours.get(job))).size === jobs.length;

test("jobs on all GPUs have different colours while there are enough", () => {
  const colours = withColours(
    new Map(),
    onGpus([
      [1, 9, 17],
      [25, 33],
      [41, 1],
    ]),
  );
  assert.ok(different(colours, [1, 9, 17, 25, 33, 41]));
  const crowd = range(1, 2 * JOB_COLOURS);
  const many = withColours(new Map(), onGpus(crowd.map(job => [job, job + 1, job + 2])));
  for (const job of crowd) assert.ok(different(many, [job, job + 1, job + 2]), "with too few colours, jobs on one GPU differ");
});

test("a job keeps its colour, and the next jobs get those that are free the longest", () => {
  const first = withColours(new Map(), onGpus([range(1, JOB_COLOURS)]));
  const next = withColours(first, onGpus([[2, 3, 100, 101]]));
  for (const job of [2, 3]) assert.equal(next.get(job), first.get(job));
  assert.ok(different(next, [2, 3, 100, 101]));
  assert.equal(next.get(100), first.get(1));
  assert.equal(withColours(next, onGpus([[2, 100]])), next, "nothing to do");
});

test("jobs that were on a GPU at the same time differ, however many there were", () => {
  const stay = (job: number, launched: number, ended: number) => ({ attempt: { job, number: 1 }, launched, ended });
  const stays = range(0, 40).map(job => stay(job, job, job + 3));
  const colours = withColours(new Map(), overTime(stays));
  for (let job = 2; job < stays.length; job += 1) assert.ok(different(colours, [job - 2, job - 1, job]));
});
