// What the manager tells as it happens: one connection for the whole page, which comes back by itself.

import { Away, Refused, stream } from "../api/request";
import { signedOut } from "../api/session";
import { EventParser } from "../api/sse";
import type { Told } from "../api/types";
import { Observable } from "../lib/observable";
import { setClock } from "./clock";

/** What changed: the GPUs, some job, or this job. */
export type Topic = "gpus" | "jobs" | "machine" | `job ${number}`;

export interface Happening {
  at: number;
  text: string;
  job?: number;
}

const KEPT = 100;
const SHORTEST_WAIT = 500;
const LONGEST_WAIT = 10_000;

export type Connection = "connecting" | "open" | "away";

/** Whether the manager is there. */
export const connection = new Observable<Connection>("connecting");

/** What happened while the page was open, the latest first. */
export const happenings = new Observable<Happening[]>([]);

type Listener = (topics: Set<Topic>) => void;
const listeners = new Set<Listener>();

/** Calls when something changed; with every topic after the connection was lost and found. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

const ALL: ReadonlySet<Topic> = new Set<Topic>(["gpus", "jobs", "machine"]);

/** Whether a listener for these topics is meant. */
export function concerns(changed: Set<Topic>, wanted: readonly Topic[]): boolean {
  const all = [...ALL].every(topic => changed.has(topic));
  return wanted.some(topic => changed.has(topic) || (all && topic.startsWith("job ")));
}

function tell(topics: Iterable<Topic>): void {
  const changed = new Set(topics);
  for (const listener of [...listeners]) listener(changed);
}

function take(told: Told): void {
  setClock(told.at);
  if (told.update === "gpus") {
    tell(["gpus"]);
    return;
  }
  const happening: Happening = { at: told.at, text: told.text };
  if (told.update === "job") happening.job = told.job;
  happenings.set([happening, ...happenings.get()].slice(0, KEPT));
  tell(told.update === "job" ? ["jobs", `job ${told.job}`] : ["machine", "gpus"]);
}

/** Listens until it is told to stop. */
export async function follow(signal: AbortSignal): Promise<void> {
  let wait = SHORTEST_WAIT;
  while (!signal.aborted) {
    const parser = new EventParser(event => take(JSON.parse(event.data) as Told));
    let opened = false;
    const opening = setTimeout(() => connection.get() === "connecting" && connection.set("away"), 5000);
    try {
      await stream(
        "/v1/events",
        signal,
        text => parser.add(text),
        () => {
          opened = true;
          wait = SHORTEST_WAIT;
          const back = connection.get() !== "open";
          connection.set("open");
          if (back) tell(ALL);
        },
      );
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status === 401) return signedOut.set(true);
      if (!(error instanceof Away) && !opened) console.warn(error);
    } finally {
      clearTimeout(opening);
    }
    connection.set("away");
    await new Promise(resolve => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}
