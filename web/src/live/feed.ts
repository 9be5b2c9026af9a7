// Live events of the manager: one connection for the whole page, which reconnects by itself.

import { messageOf, Refused, stream, Unreachable } from "../api/request";
import type { TimedUpdate } from "../api/schema";
import { signedOut } from "../api/session";
import { EventParser } from "../api/sse";
import { Observable } from "../lib/observable";
import { setClock } from "./clock";

/** What changed: the GPUs, some job, or this job. */
export type Topic = "gpus" | "jobs" | "machine" | `job ${number}`;

interface LiveEvent {
  at: number;
  text: string;
  job?: number;
}

const KEPT = 100;
const SHORTEST_WAIT = 500;
const LONGEST_WAIT = 10_000;
/** Without an answer for so long, the manager is shown as away. */
const ANSWER_TIMEOUT = 5000;
/** A page that is hidden for so long closes its connection. */
const HIDDEN_TIMEOUT = 60_000;

type Connection = "connecting" | "open" | "away";

/** The state of the connection. */
export const connection = new Observable<Connection>("connecting");

/** Events since the page was opened, the latest first. */
export const liveEvents = new Observable<LiveEvent[]>([]);

type Listener = (topics: Set<Topic>) => void;
const listeners = new Set<Listener>();

/** Calls on changes; with every topic after a reconnect. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

const ALL: ReadonlySet<Topic> = new Set<Topic>(["gpus", "jobs", "machine"]);

/** Whether the changes concern a listener of these topics. */
export function concerns(changed: Set<Topic>, wanted: readonly Topic[]): boolean {
  const all = [...ALL].every(topic => changed.has(topic));
  return wanted.some(topic => changed.has(topic) || (all && topic.startsWith("job ")));
}

function notify(topics: Iterable<Topic>): void {
  const changed = new Set(topics);
  for (const listener of [...listeners]) listener(changed);
}

function receive(message: TimedUpdate): void {
  setClock(message.at);
  if (message.update === "gpus") {
    notify(["gpus"]);
    return;
  }
  const event: LiveEvent = { at: message.at, text: message.text };
  if (message.update === "job") event.job = message.job;
  liveEvents.set([event, ...liveEvents.get()].slice(0, KEPT));
  notify(message.update === "job" ? ["jobs", `job ${message.job}`] : ["machine", "gpus"]);
}

/** Aborts when the page was hidden for a while: browsers limit the number of connections. */
function whileVisible(outer: AbortSignal): { signal: AbortSignal; done: () => void } {
  const inner = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => inner.abort();
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(end, HIDDEN_TIMEOUT);
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

/** Waits until the page is visible. */
const visible = () =>
  new Promise<void>(resolve => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    look();
  });

/** Listens until the connection ends. */
async function listenOnce(signal: AbortSignal, opened: () => void): Promise<void> {
  const parser = new EventParser(event => receive(JSON.parse(event.data) as TimedUpdate));
  const late = setTimeout(() => connection.get() === "connecting" && connection.set("away"), ANSWER_TIMEOUT);
  try {
    await stream("/v1/events", signal, text => parser.add(text), opened);
  } catch (error) {
    if (error instanceof Refused && error.status === 401) signedOut.set(true);
    else if (!signal.aborted && !(error instanceof Unreachable)) console.warn(messageOf(error));
  } finally {
    clearTimeout(late);
  }
}

/** Listens until it is aborted, or the user is signed out. */
export async function follow(signal: AbortSignal): Promise<void> {
  let wait = SHORTEST_WAIT;
  connection.set("connecting");
  while (!signal.aborted) {
    const visibility = whileVisible(signal);
    await listenOnce(visibility.signal, () => {
      wait = SHORTEST_WAIT;
      connection.set("open");
      notify(ALL);
    });
    visibility.done();
    if (signal.aborted || signedOut.get()) return;
    if (visibility.signal.aborted) {
      connection.set("connecting");
      await visible();
      continue;
    }
    connection.set("away");
    await new Promise(resolve => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}
