// Colours that mean something.

export type Tone = "good" | "bad" | "memory" | "neutral" | "busy" | "waiting";

/** What kind of an end the words for it mean. */
export function endingTone(ending: string): Tone {
  if (/succeeded|^done$/.test(ending)) return "good";
  if (/memory/.test(ending)) return "memory";
  if (/cancel|requeue|preempt|put back|time limit|shutdown/.test(ending)) return "neutral";
  return "bad";
}

/** What kind of a standing a state is. */
export function phaseTone(phase: string): Tone {
  if (phase === "running" || phase === "starting") return "busy";
  if (phase === "recovering") return "memory";
  return phase === "held" || phase === "done" ? "neutral" : "waiting";
}
