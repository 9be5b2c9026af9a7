// Colours that mean something.

import type { Ending, Phase } from "../api/schema";

export type Tone = "good" | "bad" | "memory" | "neutral" | "busy" | "waiting";

const ENDINGS: Record<Ending["class"], Tone> = { succeeded: "good", failed: "bad", out_of_memory: "memory", stopped: "neutral" };
const PHASES: Record<Phase, Tone> = {
  held: "neutral",
  estimating: "waiting",
  queued: "waiting",
  starting: "busy",
  running: "busy",
  recovering: "memory",
  preempted: "waiting",
  done: "neutral",
};

export const endingTone = (ending: Ending): Tone => ENDINGS[ending.class];
export const phaseTone = (phase: Phase): Tone => PHASES[phase];
