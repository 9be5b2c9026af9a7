// A job: its state, why it waits or failed, its estimate, its usage over time, its attempts, its log.

import { useRef } from "preact/hooks";
import { get } from "../api/client";
import type { JobDetail } from "../api/schema";
import { Attempts } from "../components/attempts";
import { EstimateBars } from "../components/estimate_bars";
import { JobActions } from "../components/job_actions";
import { JobOverTime } from "../components/job_over_time";
import { JobRequest } from "../components/job_request";
import { leftText } from "../components/jobs_table";
import { isFailure, LogView } from "../components/log_view";
import { Badge, Fact, Pending, Swatch, When } from "../components/marks";
import { Verdict } from "../components/verdict";
import { WhyView } from "../components/why_view";
import { endingTone, phaseTone } from "../lib/colour";
import { duration, jobNumber, percent } from "../lib/format";
import { useObservable } from "../lib/observable";
import { LAUNCHED, WAITING } from "../lib/words";
import { mayActFor, myself } from "../live/manager";
import { useLive } from "../live/use_live";

export function JobPage({ argument }: { argument: string }) {
  const id = Number(argument);
  const over = useRef(false);
  // Its usage changes with every sample of the GPUs, until it is done.
  const live = useLive(
    signal => get("/v1/jobs/{job}", { path: { job: id }, signal }),
    over.current ? [`job ${id}`] : [`job ${id}`, "gpus"],
    argument,
  );
  over.current = live.data?.phase === "done";
  const me = useObservable(myself);
  if (!live.data) return <Pending problem={live.problem} />;
  const job = live.data;
  const mayRead = mayActFor(me, job.owner.uid);
  const last = job.attempts.at(-1);
  const failed = isFailure(job.ending) ? last : undefined;
  return (
    <>
      <div class="job-head">
        <h1>
          <Swatch job={job.id} /> Job {jobNumber(job.id, job.array)}
          {job.request.name && ` ${job.request.name}`}
        </h1>
        <JobState job={job} />
        <ProgressBar job={job} />
        <JobActions job={job} done={live.reload} />
      </div>
      {failed && <Verdict job={job.id} attempt={failed} mayRead={mayRead} />}
      <JobRequest job={job} />
      {WAITING.includes(job.phase) && <WaitReason id={job.id} />}
      {job.request.resources?.gpus !== 0 && (
        <section aria-labelledby="memory-title">
          <h2 id="memory-title">Memory per GPU: estimated and used</h2>
          <EstimateBars estimate={job.estimate} attempts={job.attempts} />
          <EstimateWords job={job} />
        </section>
      )}
      <JobOverTime job={job} />
      <Attempts attempts={job.attempts} />
      {job.attempts.length > 0 &&
        (mayRead ? (
          <LogView job={job.id} attempts={job.attempts} running={LAUNCHED.includes(job.phase)} />
        ) : (
          <p class="quiet">Only {job.owner.name} and operators can read the log.</p>
        ))}
      <Events job={job} />
    </>
  );
}

function JobState({ job }: { job: JobDetail }) {
  return (
    <span aria-live="polite">
      {job.ending ? <Badge tone={endingTone(job.ending)}>{job.ending.text}</Badge> : <Badge tone={phaseTone(job.phase)}>{job.phase}</Badge>}
    </span>
  );
}

/** Progress of a running job, with the time left. */
function ProgressBar({ job }: { job: JobDetail }) {
  if (!LAUNCHED.includes(job.phase)) return null;
  // The manager predicts no end of a job that hangs.
  const share = job.prediction?.progress ?? undefined;
  const left = job.prediction?.ends?.likely;
  if (share === undefined && left === undefined) return null;
  return (
    <span class="progress">
      {share !== undefined && <progress value={share} aria-label="Progress" />}
      {share !== undefined && percent(share)} {left !== undefined && <span class="quiet">{leftText(left)} left</span>}
    </span>
  );
}

function WaitReason({ id }: { id: number }) {
  const why = useLive(signal => get("/v1/jobs/{job}/why", { path: { job: id }, signal }), ["gpus", "jobs"], String(id), 2000);
  return (
    <section aria-labelledby="why-title">
      <h2 id="why-title">Why it waits</h2>
      {why.data ? <WhyView why={why.data} /> : <Pending problem={why.problem} />}
    </section>
  );
}

const SOURCES: Record<string, string> = {
  declared: "declared by the user",
  history: "measured in earlier runs",
  static: "computed from the model",
  "dry-run": "measured by a dry run of the script",
};

function EstimateWords({ job: { estimate } }: { job: JobDetail }) {
  const busy = Object.entries(estimate.utilisation).map(([name, value]) => `${name.toUpperCase()} ${percent(value)}`);
  return (
    <>
      <dl class="facts">
        {estimate.source && <Fact name="Source of the estimate">{SOURCES[estimate.source] ?? estimate.source}</Fact>}
        {estimate.duration !== null && estimate.duration !== undefined && (
          <Fact name="Expected run time">{duration(estimate.duration)}</Fact>
        )}
        {busy.length > 0 && <Fact name="Expected utilisation">{busy.join(", ")}</Fact>}
      </dl>
      {estimate.notes.map(note => (
        <p key={note} class="quiet">
          {note}
        </p>
      ))}
    </>
  );
}

function Events({ job }: { job: JobDetail }) {
  return (
    <section aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      <ol class="lines events">
        {job.events.map(({ sequence, event, text }) => (
          <li key={sequence}>
            <span class="quiet">
              <When at={event.at} />
            </span>
            <span>{text}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
