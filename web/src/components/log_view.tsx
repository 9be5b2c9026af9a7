// The end of a job's log, as it grows.

import { useEffect, useRef, useState } from "preact/hooks";
import { addressOf } from "../api/client";
import { messageOf, stream } from "../api/request";
import type { AttemptDetail, Ending } from "../api/schema";
import { count } from "../lib/format";
import { LogTail } from "../lib/log";
import { Choices } from "./choices";

const LINES = 2000;
/** Time between two redraws, in milliseconds. */
const DRAWN_EVERY = 150;
/** Within this distance of the end, the view follows the log. */
const CLOSE = 40;

interface Shown {
  /** The attempt and stream that it is of. */
  of: string;
  text: string;
  dropped: number;
  over: boolean;
  problem?: string;
}

const keyOf = (attempt: number, kind: Stream) => `${attempt} ${kind}`;
export type Stream = "stdout" | "stderr";
export const OTHER: Record<Stream, Stream> = { stdout: "stderr", stderr: "stdout" };

/** Loads a log, and follows it. */
function useLog(job: number, attempt: number, kind: Stream, follows: boolean): Shown {
  const [shown, setShown] = useState<Shown>({ of: "", text: "", dropped: 0, over: false });
  useEffect(() => {
    const ended = new AbortController();
    const tail = new LogTail(LINES);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const draw = (more: Partial<Shown> = {}) => {
      clearTimeout(timer);
      timer = undefined;
      if (!ended.signal.aborted)
        setShown({ of: keyOf(attempt, kind), text: [...tail.lines, tail.rest].join("\n"), dropped: tail.dropped, over: false, ...more });
    };
    const take = (text: string) => {
      tail.add(text);
      timer ??= setTimeout(draw, DRAWN_EVERY);
    };
    draw();
    const path = addressOf("/v1/jobs/{job}/logs", { path: { job }, query: { stream: kind, attempt, lines: LINES, follow: follows } });
    stream(path, ended.signal, take).then(
      () => draw({ over: true }),
      error => draw({ over: true, problem: messageOf(error) }),
    );
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [job, attempt, kind, follows]);
  return shown;
}

/** The stream that says why an attempt failed, or else what it prints. */
export const errorStream = (ending: Ending | null | undefined): Stream => (isFailure(ending) ? "stderr" : "stdout");

/** Whether an attempt ended with an error. */
export const isFailure = (ending: Ending | null | undefined): boolean => ending?.class === "failed" || ending?.class === "out_of_memory";

export function LogView({ job, attempts, running }: { job: number; attempts: AttemptDetail[]; running: boolean }) {
  const numbers = attempts.map(({ attempt }) => attempt.number);
  const latest = numbers.at(-1) ?? 1;
  const [chosen, setChosen] = useState<number>();
  const attempt = chosen ?? latest;
  const [chosenKind, setKind] = useState<Stream>();
  const [without, setWithout] = useState<string>();
  // A failed attempt usually tells the error on stderr. An empty stream gives way to the other.
  const first = errorStream(attempts.find(other => other.attempt.number === attempt)?.ending);
  const kind = chosenKind ?? (without === keyOf(attempt, first) ? OTHER[first] : first);
  const log = useLog(job, attempt, kind, running && attempt === latest);
  useEffect(() => {
    if (log.over && !log.text && !log.problem && kind === first && log.of === keyOf(attempt, first)) setWithout(log.of);
  }, [log]);
  const box = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    if (follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [log.text]);
  const scrolled = () => {
    const pre = box.current;
    if (pre) follows.current = pre.scrollHeight - pre.scrollTop - pre.clientHeight < CLOSE;
  };
  return (
    <section aria-labelledby="log-title">
      <header class="section-head">
        <h2 id="log-title">Log</h2>
        <Choices label="Stream" options={{ stdout: "stdout", stderr: "stderr" }} chosen={kind} choose={setKind} />
        {numbers.length > 1 && (
          <label class="inline">
            Attempt
            <select value={attempt} onChange={event => setChosen(Number(event.currentTarget.value))}>
              {numbers.map(number => (
                <option key={number} value={number}>
                  {number}
                </option>
              ))}
            </select>
          </label>
        )}
        <p class="quiet">
          {log.dropped > 0 && `the last ${count(LINES, "line")}`}
          {!log.over && " live"}
        </p>
      </header>
      {log.problem ? (
        <p class="notice bad">{log.problem}</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
        <pre class="log" ref={box} tabIndex={0} onScroll={scrolled} role="log" aria-live="off" aria-label={`${kind} of attempt ${attempt}`}>
          {log.text || (log.over ? `The job printed nothing to ${kind}.` : "")}
        </pre>
      )}
    </section>
  );
}
