// What the manager tells as it happens: one connection for the whole page, which comes back by itself.

import { Away, Refused, reasonOf, stream } from "../api/request";
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
/** A manager that has not answered by then is away. */
const LATE = 5000;
/** A page that nobody saw for so long need not listen. */
const UNSEEN = 60_000;

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

/** Aborts when the page was out of sight for a while: browsers have few connections, and pages are many. */
function whileSeen(outer: AbortSignal): { signal: AbortSignal; done: () => void } {
  const inner = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => inner.abort();
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(end, UNSEEN);
  };
  look();
  document.addEventListener("visibilitychange", look);
  outer.addEventListener("abort", end);
  const done = () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
    outer.removeEventListener("abort", end);
  };
  return { signal: inner.signal, done };
}

/** Waits until the page is in sight. */
const seen = () =>
  new Promise<void>(resolve => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    look();
  });

/** Listens once, for as long as it goes. */
async function listenOnce(signal: AbortSignal, opened: () => void): Promise<void> {
  const parser = new EventParser(event => take(JSON.parse(event.data) as Told));
  const late = setTimeout(() => connection.get() === "connecting" && connection.set("away"), LATE);
  try {
    await stream("/v1/events", signal, text => parser.add(text), opened);
  } catch (error) {
    if (error instanceof Refused && error.status === 401) signedOut.set(true);
    else if (!signal.aborted && !(error instanceof Away)) console.warn(reasonOf(error));
  } finally {
    clearTimeout(late);
  }
}

/** Listens until it is told to stop, or that we are signed out. */
export async function follow(signal: AbortSignal): Promise<void> {
  let wait = SHORTEST_WAIT;
  connection.set("connecting");
  while (!signal.aborted) {
    const sight = whileSeen(signal);
    await listenOnce(sight.signal, () => {
      wait = SHORTEST_WAIT;
      connection.set("open");
      tell(ALL);
    });
    sight.done();
    if (signal.aborted || signedOut.get()) return;
    if (sight.signal.aborted) {
      connection.set("connecting");
      await seen();
      continue;
    }
    connection.set("away");
    await new Promise(resolve => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}
