// A job has the same colour everywhere, unless another job in the same chart has it.

import type { AttemptId } from "../api/schema";

const JOB_COLOURS = 8;

/** The colour index of each job. */
export type JobColours = ReadonlyMap<number, number>;

/** The usual colour of a job. Neighbouring numbers get different ones, as they often share a GPU. */
const ownColour = (id: number): number => (id * 3) % JOB_COLOURS;

/** The colour of a job in a chart. */
export const jobColour = (id: number, colours?: JobColours): string => `var(--job-${colours?.get(id) ?? ownColour(id)})`;

/** The usual colour, or else the next free one; unset: none is free. */
function freeColour(id: number, taken: ReadonlySet<number | undefined>): number | undefined {
  const inOrder = Array.from({ length: JOB_COLOURS }, (_, step) => (ownColour(id) + step) % JOB_COLOURS);
  return inOrder.find(colour => !taken.has(colour));
}

/** Different colours for jobs that share a GPU. A job has the same colour on all of its GPUs. */
export function coloursOnGpus(gpus: readonly { tenants: readonly { attempt: AttemptId }[] }[]): JobColours {
  const neighbours = new Map<number, Set<number>>();
  for (const { tenants } of gpus) {
    for (const { attempt } of tenants) {
      const known = neighbours.get(attempt.job) ?? new Set();
      for (const other of tenants) known.add(other.attempt.job);
      neighbours.set(attempt.job, known);
    }
  }
  const colours = new Map<number, number>();
  for (const [job, others] of [...neighbours].sort(([a], [b]) => a - b)) {
    colours.set(job, freeColour(job, new Set([...others].map(other => colours.get(other)))) ?? ownColour(job));
  }
  return colours;
}

interface Stay {
  attempt: AttemptId;
  launched: number;
  ended?: number | null;
}

/** Colours of jobs on one GPU over time, after those of the jobs on it now. Of many jobs, those that overlap differ. */
export function coloursOverTime(stays: readonly Stay[], now: JobColours): JobColours {
  const colours = new Map(now);
  const drawn = stays.filter(({ attempt }) => now.has(attempt.job));
  const inPicture = new Set<number | undefined>(now.values());
  for (const stay of stays) {
    const { job } = stay.attempt;
    if (!colours.has(job)) {
      const beside = () => new Set(drawn.filter(other => overlap(stay, other)).map(({ attempt }) => colours.get(attempt.job)));
      const colour = freeColour(job, inPicture) ?? freeColour(job, beside()) ?? ownColour(job);
      colours.set(job, colour);
      inPicture.add(colour);
    }
    if (!now.has(job)) drawn.push(stay);
  }
  return colours;
}

const endOf = ({ ended }: Stay): number => ended ?? Number.POSITIVE_INFINITY;
const overlap = (one: Stay, other: Stay): boolean => one.launched < endOf(other) && other.launched < endOf(one);
