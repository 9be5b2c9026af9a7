// The colours of jobs, kept by the browser so that they stay the same in all tabs.

import type { GpuDetail, QueueRow } from "../api/schema";
import { JOB_COLOURS, type JobColours, onGpus, type Shown, withColours } from "../lib/job_colours";
import { Observable, useObservable } from "../lib/observable";

const KEY = "carma-job-colours";
/** Number of jobs whose colour is kept. */
const KEPT = 1000;

export const jobColours = new Observable<JobColours>(new Map());

/** The colours that another tab or an earlier visit gave. */
function stored(): JobColours {
  try {
    const pairs: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    const valid = (pair: unknown): pair is [number, number] => Array.isArray(pair) && pair.every(Number.isInteger) && pair[1] < JOB_COLOURS;
    return new Map(Array.isArray(pairs) ? pairs.filter(valid) : []);
  } catch {
    return new Map();
  }
}

/** Gives colours to the jobs of a picture that have none yet. */
export function giveColours(picture: readonly Shown[]): void {
  if (picture.every(({ job }) => jobColours.get().has(job))) return;
  const colours = withColours(new Map([...jobColours.get(), ...stored()]), picture);
  const kept = [...colours].slice(-KEPT);
  localStorage.setItem(KEY, JSON.stringify(kept));
  jobColours.set(new Map(kept));
}

export const restoreColours = () => jobColours.set(stored());

/** Gives colours to the jobs on these GPUs. */
export function colourGpus(gpus: readonly GpuDetail[]): void {
  giveColours(onGpus(gpus.map(({ tenants }) => tenants.map(({ attempt }) => attempt.job))));
}

/** Gives colours to the running jobs of a queue. */
export function colourQueue(rows: readonly QueueRow[]): void {
  const gpus = new Map<string, number[]>();
  for (const { id, devices } of rows) for (const device of devices) gpus.set(device, [...(gpus.get(device) ?? []), id]);
  giveColours(onGpus([...gpus.values()]));
}

/** The colour of a job; unset: it has none. */
export function useJobColour(): (job: number) => string | undefined {
  const colours = useObservable(jobColours);
  return job => {
    const colour = colours.get(job);
    return colour === undefined ? undefined : `var(--job-${colour})`;
  };
}
