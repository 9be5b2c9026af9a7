// Why a job failed, with the last lines of its log.

import { useEffect, useState } from "preact/hooks";
import { addressOf } from "../api/client";
import { stream } from "../api/request";
import type { AttemptDetail } from "../api/schema";
import { LogTail } from "../lib/log";
import { errorStream, OTHER, type Stream } from "./log_view";

const LINES = 12;

interface Lines {
  of: Stream;
  text: string;
}

/** The last lines of the stream with the error, or of the other if that is empty. */
async function lastLines(job: number, { attempt, ending }: AttemptDetail, signal: AbortSignal): Promise<Lines | undefined> {
  const first = errorStream(ending);
  for (const of of [first, OTHER[first]]) {
    const tail = new LogTail(LINES);
    const query = { stream: of, attempt: attempt.number, lines: LINES };
    await stream(addressOf("/v1/jobs/{job}/logs", { path: { job }, query }), signal, text => tail.add(text));
    const text = [...tail.lines, tail.rest].join("\n").trim();
    if (text) return { of, text };
  }
  return undefined;
}

export function Verdict({ job, attempt, mayRead }: { job: number; attempt: AttemptDetail; mayRead: boolean }) {
  const [lines, setLines] = useState<Lines>();
  const { number } = attempt.attempt;
  useEffect(() => {
    if (!mayRead) return;
    const ended = new AbortController();
    // The log below reports problems.
    lastLines(job, attempt, ended.signal).then(setLines, () => undefined);
    return () => ended.abort();
  }, [job, number, mayRead]);
  return (
    <section class="notice bad" aria-labelledby="verdict-title">
      <h2 id="verdict-title">
        Attempt {number} {attempt.ending?.text}
      </h2>
      {attempt.reason && <p>Reason: {attempt.reason}</p>}
      {lines && (
        <>
          <p>Last lines of {lines.of}:</p>
          <pre class="last-lines">{lines.text}</pre>
        </>
      )}
    </section>
  );
}
