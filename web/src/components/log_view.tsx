// The end of a job's log, as it grows.

import { useEffect, useRef, useState } from "preact/hooks";
import { addressOf } from "../api/client";
import { messageOf, stream } from "../api/request";
import type { LogStream } from "../api/schema";
import { count } from "../lib/format";
import { LogTail } from "../lib/log";
import { Choices } from "./choices";

const LINES = 2000;
/** Time between two redraws, in milliseconds. */
const DRAWN_EVERY = 150;
/** Within this distance of the end, the view follows the log. */
const CLOSE = 40;

interface Shown {
  text: string;
  dropped: number;
  over: boolean;
  problem?: string;
}

/** Loads a log, and follows it. */
function useLog(job: number, attempt: number, kind: LogStream, follows: boolean): Shown {
  const [shown, setShown] = useState<Shown>({ text: "", dropped: 0, over: false });
  useEffect(() => {
    const ended = new AbortController();
    const tail = new LogTail(LINES);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const draw = (more: Partial<Shown> = {}) => {
      clearTimeout(timer);
      timer = undefined;
      if (!ended.signal.aborted) setShown({ text: [...tail.lines, tail.rest].join("\n"), dropped: tail.dropped, over: false, ...more });
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

export function LogView({ job, attempts, running }: { job: number; attempts: number[]; running: boolean }) {
  const latest = attempts.at(-1) ?? 1;
  const [chosen, setChosen] = useState<number>();
  const [kind, setKind] = useState<LogStream>("stdout");
  const attempt = chosen ?? latest;
  const log = useLog(job, attempt, kind, running && attempt === latest);
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
        {attempts.length > 1 && (
          <label class="inline">
            Attempt
            <select value={attempt} onChange={event => setChosen(Number(event.currentTarget.value))}>
              {attempts.map(number => (
                <option key={number} value={number}>
                  {number}
                </option>
              ))}
            </select>
          </label>
        )}
        <p class="quiet">
          {log.dropped > 0 ? `the last ${count(LINES, "line")}` : `at most the last ${count(LINES, "line")}`}
          {!log.over && ", as it grows"}
        </p>
      </header>
      {log.problem ? (
        <p class="notice bad">{log.problem}</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
        <pre class="log" ref={box} tabIndex={0} onScroll={scrolled} role="log" aria-live="off" aria-label={`${kind} of attempt ${attempt}`}>
          {log.text || (log.over ? "It printed nothing here." : "")}
        </pre>
      )}
    </section>
  );
}
