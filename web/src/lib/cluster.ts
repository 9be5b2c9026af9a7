// Words for servers, pools and pilots.

import type { Pilot, PoolDetail, PoolPause, ServerDetail } from "../api/schema";
import type { Tone } from "./colour";
import { count, duration, memory } from "./format";

export interface State {
  tone: Tone;
  word: string;
  /** More of it. */
  reason?: string;
}

/** The name of a server, as in the names of its GPUs. */
export const serverName = (id: number): string => `s${id}`;

export function serverState({ connected, draining }: ServerDetail): State {
  if (!connected) return { tone: "bad", word: "not connected" };
  if (draining) return { tone: "memory", word: "draining", reason: draining };
  return { tone: "good", word: "connected" };
}

export function pauseReason(pause: PoolPause): string {
  return "by" in pause ? `by ${pause.by}` : `after failures: ${pause.failures}`;
}

export function poolState({ paused, removed, note }: PoolDetail): State {
  if (removed) return { tone: "neutral", word: "being removed" };
  if (paused) return { tone: "memory", word: "paused", reason: pauseReason(paused) };
  return note ? { tone: "good", word: "active", reason: note } : { tone: "good", word: "active", reason: "requests the next pilot" };
}

export function pilotState({ state, server, returned }: Pilot): State {
  if (returned) return { tone: "neutral", word: "returned" };
  if (state === "connected")
    return { tone: "good", word: "connected", ...(typeof server === "number" ? { reason: `as ${serverName(server)}` } : {}) };
  return state === "pending" ? { tone: "waiting", word: "pending" } : { tone: "waiting", word: "requesting" };
}

/** How many pilots have connected and how many are still to come, of how many. */
export function pilotCounts({ pilots, settings }: PoolDetail): string {
  const connected = pilots.filter(({ state }) => state === "connected").length;
  const pending = pilots.filter(({ state, returned }) => state !== "connected" && !returned).length;
  return `${connected} connected, ${pending} pending, maximum ${settings.max}`;
}

/** The settings of a pool that are set, with their names. */
export function poolFacts({
  settings,
  seen_memory: seen,
  queue_wait: wait,
  last_failure: failure,
  failures,
}: PoolDetail): [string, string][] {
  const size = seen ?? settings.gpu_memory;
  const text = (name: string, value: string | null | undefined): [string, string][] => (value ? [[name, value]] : []);
  return [
    ["Partition", settings.partition ?? "default"],
    ["Each pilot", `${count(settings.gpus, "GPU")}${settings.gpu_type ? ` ${settings.gpu_type}` : ""} for ${duration(settings.time)}`],
    ...text("GPU memory", size ? memory(size) : null),
    ...text("Cores", settings.cpus ? `${settings.cpus}` : null),
    ...text("Host memory", settings.mem ? memory(settings.mem) : null),
    ["Pilots in the queue", `at most ${settings.backlog}`],
    ["Returned", `after ${duration(settings.idle)} without a job`],
    ["Requests a pilot", `if a job would wait more than ${duration(settings.patience)}`],
    ...text("Account", settings.account),
    ...text("QOS", settings.qos),
    ...text("Constraint", settings.constraint),
    ...text("Setup", settings.setup),
    ...text("Teardown", settings.teardown),
    ...text("sbatch", settings.extra?.join(" ")),
    ...text("Last wait in the queue", wait === null || wait === undefined ? null : duration(wait)),
    ...text("Failures in a row", failures ? `${failures}` : null),
    ...text("Last failure", failure),
  ];
}
