import assert from "node:assert/strict";
import { test } from "node:test";
import { coloursOnGpus, coloursOverTime, jobColour } from "../src/lib/job_colours";

const on = (...jobs: number[]) => ({ tenants: jobs.map(job => ({ attempt: { job, number: 1 } })) });
const different = (colours: ReadonlyMap<number, number>, jobs: number[]) => new Set(jobs.map(job => colours.get(job))).size === jobs.length;

test("jobs on one GPU have different colours, and the same on all of their GPUs", () => {
  assert.equal(jobColour(29), jobColour(45));
  const gpus = [on(29, 39, 42, 45), on(37, 45, 53), on(28)];
  const colours = coloursOnGpus(gpus);
  for (const { tenants } of gpus) {
    assert.ok(
      different(
        colours,
        tenants.map(({ attempt }) => attempt.job),
      ),
    );
  }
  assert.equal(jobColour(29, colours), jobColour(29), "the first keeps its own");
  assert.notEqual(jobColour(45, colours), jobColour(45));
  assert.equal(coloursOnGpus([on(...Array.from({ length: 20 }, (_, job) => job))]).size, 20, "more jobs than colours");
});

test("jobs in one picture have different colours; of more than there are, those at the same time", () => {
  const stay = (job: number, launched: number, ended?: number) => ({ attempt: { job, number: 1 }, launched, ...(ended ? { ended } : {}) });
  const now = coloursOnGpus([on(16, 24)]);
  const few = coloursOverTime([stay(8, 0, 5), stay(16, 3), stay(24, 6)], now);
  assert.ok(different(few, [8, 16, 24]));
  assert.deepEqual([few.get(16), few.get(24)], [now.get(16), now.get(24)], "who is there now keeps it");
  // All have the same colour of their own, and three are there at any time.
  const many = Array.from({ length: 40 }, (_, place) => stay(8 * place, place, place + 3));
  const colours = coloursOverTime(many, new Map());
  for (let place = 2; place < many.length; place += 1)
    assert.ok(
      different(
        colours,
        many.slice(place - 2, place + 1).map(({ attempt }) => attempt.job),
      ),
    );
});
