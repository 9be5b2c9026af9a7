// How far a job is, and how long it still takes. The only place that predicts.

/** What is known about a running job. Times in seconds. */
export interface Running {
  /** From 0 to 1, if the job reports it. */
  progress: number | null | undefined;
  /** Time since the launch of its attempt. */
  elapsed: number;
  /** Expected runtime of the whole job, if estimated. */
  expected?: number | null | undefined;
}

export interface Progress {
  /** From 0 to 1, as the job reports it. */
  share?: number;
  /** Seconds left, about. */
  left?: number;
}

/** Progress and time left: by the progress that the job reports, else by its expected runtime. */
export function progressOf({ progress, elapsed, expected }: Running): Progress {
  if (progress !== null && progress !== undefined) {
    return progress > 0 ? { share: progress, left: (elapsed / progress) * (1 - progress) } : { share: 0 };
  }
  return expected && expected > elapsed ? { left: expected - elapsed } : {};
}
