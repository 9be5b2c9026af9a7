// What the manager says in JSON, in words.

import type { Ending } from "../api/types";
import { memory } from "./format";

const spaced = (word: string) => word.replaceAll("_", " ");

function endingParts(ending: Ending): { kind: string; said: Record<string, unknown> } {
  if (typeof ending === "string") return { kind: spaced(ending), said: {} };
  const [kind = "ended", detail] = Object.entries(ending)[0] ?? [];
  return { kind: spaced(kind), said: typeof detail === "object" && detail !== null ? (detail as Record<string, unknown>) : {} };
}

/** A verdict or an outcome in two or three words, where there is little room: "exit code 3". */
export function endingBrief(ending: Ending): string {
  const { kind, said } = endingParts(ending);
  return "code" in said ? `exit code ${said.code}` : kind;
}

/** A verdict or an outcome in words: "failed with exit code 3". */
export function endingWords(ending: Ending): string {
  const { kind, said } = endingParts(ending);
  if ("code" in said) return `${kind} with exit code ${said.code}`;
  if ("reason" in said) return `${kind}: ${said.reason}`;
  if ("on" in said) return `${kind} (job ${said.on})`;
  return kind;
}

/** Figures of the manager's own words in units that are read at a glance, without times that count from its start. */
export function readable(text: string): string {
  const withMemory = text.replace(/(\d+) MiB/g, (_, mib: string) => memory(Number(mib)));
  return withMemory
    .replace(/\bs0\//g, "")
    .replace(/ (from|until) [\d.]+ s\b/g, "")
    .replace(/\bfull at [\d.]+ s\b/g, "full soon");
}

/** What each GPU says, from the lines of an explanation: the first is the reason, then a block for each device. */
export function explanation(text: string): { reason: string; answers: { device: string; says: string[] }[] } {
  const [reason = "", ...lines] = text.split("\n");
  const answers: { device: string; says: string[] }[] = [];
  for (const line of lines) {
    const [, device, says] = /^ {2}(\S+) +(.*)$/.exec(line) ?? [];
    if (device && says !== undefined) answers.push({ device, says: [readable(says)] });
    else answers.at(-1)?.says.push(readable(line.trim()));
  }
  return { reason: readable(reason), answers };
}
