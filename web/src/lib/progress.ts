// How far a job is, and how long it still takes.

/** What is known about a running job. Times in seconds. */
export interface Running {
  /** From 0 to 1, if the job reports or prints it. */
  progress: number | null | undefined;
  /** Time since the launch of its attempt. */
  elapsed: number;
  /** Time until its end, as the manager predicts it. */
  predicted?: number | null | undefined;
}

export interface Progress {
  /** From 0 to 1. */
  share?: number;
  /** Seconds left, about. */
  left?: number;
}

/** Progress and time left: as the manager predicts it, else by the progress so far. */
export function progressOf({ progress, elapsed, predicted }: Running): Progress {
  const share = progress ?? undefined;
  const left = predicted ?? (share ? (elapsed / share) * (1 - share) : undefined);
  return { ...(share !== undefined && { share }), ...(left !== undefined && { left }) };
}
