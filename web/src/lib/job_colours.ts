// A job's colour is its own everywhere, unless another in the same picture has it.

import type { AttemptId } from "../api/types";

const JOB_COLOURS = 8;

/** By their jobs' numbers, which of the colours they have. */
export type JobColours = ReadonlyMap<number, number>;

/** Which colour is a job's own. Neighbouring numbers get different ones, as they often share a GPU. */
const ownColour = (id: number): number => (id * 3) % JOB_COLOURS;

/** The colour of a job, where those in a picture may have others than their own. */
export const jobColour = (id: number, colours?: JobColours): string => `var(--job-${colours?.get(id) ?? ownColour(id)})`;

/** Its own, or else the next that is not taken; unset: all are. */
function freeColour(id: number, taken: ReadonlySet<number | undefined>): number | undefined {
  const inOrder = Array.from({ length: JOB_COLOURS }, (_, step) => (ownColour(id) + step) % JOB_COLOURS);
  return inOrder.find(colour => !taken.has(colour));
}

/** Colours by which jobs that share a GPU are told apart. A job has the same on all of its GPUs. */
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

/** The same for jobs that were on one GPU over time: they take what those that are on it now leave. Of many, those at the same time differ. */
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
