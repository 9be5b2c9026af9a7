// Texts that several pages show.

import type { JobCounts, OutcomeFilter, Phase } from "../api/schema";
import type { Tone } from "./colour";

export const LOADING = "Loading …";
export const NO_MATCH = "No job matches the filters.";
export const LOST_GPU = "The driver no longer finds this GPU. CARMA starts no jobs on it until it is back.";
export const GPU_HOURS_HINT = "GPU-hours count each GPU of a job in full, also when jobs share it.";

/** States of jobs in a list, and the words for them. */
export const STATES: Record<keyof JobCounts, { word: string; tone: Tone }> = {
  running: { word: "running", tone: "busy" },
  waiting: { word: "waiting", tone: "waiting" },
  held: { word: "held", tone: "neutral" },
  succeeded: { word: "succeeded", tone: "good" },
  failed: { word: "failed", tone: "bad" },
  out_of_memory: { word: "out of memory", tone: "memory" },
  stopped: { word: "cancelled or timed out", tone: "neutral" },
};

/** The choices of a filter by outcome. */
export const OUTCOMES: Record<OutcomeFilter, string> = {
  succeeded: "succeeded",
  failed: "failed (any reason)",
  oom: "out of memory",
  "time-limit": "time limit reached",
  lost: "GPU or server lost",
  "not-started": "could not start",
  cancelled: "cancelled",
};

/** Jobs in these states wait. */
export const WAITING: readonly Phase[] = ["queued", "estimating", "held", "recovering", "preempted"];
/** Jobs in these states have a running attempt. */
export const LAUNCHED: readonly Phase[] = ["starting", "running"];
