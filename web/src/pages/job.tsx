// A job: its state, why it waits, its estimate, its attempts, its log.

import { useRef } from "preact/hooks";
import { get } from "../api/client";
import type { AttemptDetail, JobDetail } from "../api/schema";
import { EstimateBars } from "../components/estimate_bars";
import { JobActions } from "../components/job_actions";
import { LogView } from "../components/log_view";
import { Badge, Elapsed, EndingBadge, Fact, GpuLinks, Pending, Swatch, When } from "../components/marks";
import { type ColumnOf, ROOMY, Table } from "../components/table";
import { WhyView } from "../components/why_view";
import { endingTone, phaseTone } from "../lib/colour";
import { count, duration, energy, jobNumber, memory, percent, UNKNOWN } from "../lib/format";
import { useObservable } from "../lib/observable";
import { quoted } from "../lib/parse";
import { useNow } from "../live/clock";
import { mayActFor, myself } from "../live/manager";
import { useLive } from "../live/use_live";
import { to } from "../router";

const WAITING = ["queued", "estimating", "held", "recovering", "preempted"];
const LAUNCHED = ["starting", "running"];

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
  return (
    <>
      <div class="job-head">
        <h1>
          <Swatch job={job.id} /> Job {jobNumber(job.id, job.array)}
          {job.request.name && ` ${job.request.name}`}
        </h1>
        <JobState job={job} />
        <JobActions job={job} done={live.reload} />
      </div>
      <Request job={job} />
      {WAITING.includes(job.phase) && <WaitReason id={job.id} />}
      <section aria-labelledby="memory-title">
        <h2 id="memory-title">Memory on a GPU: expected and real</h2>
        <EstimateBars estimate={job.estimate} attempts={job.attempts} />
        <EstimateWords job={job} />
      </section>
      <Attempts job={job} />
      {job.attempts.length > 0 &&
        (mayActFor(me, job.owner.uid) ? (
          <LogView job={job.id} attempts={job.attempts.map(({ attempt }) => attempt.number)} running={LAUNCHED.includes(job.phase)} />
        ) : (
          <p class="quiet">Its log is for {job.owner.name} and operators.</p>
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

function commandOf({ request: { command } }: JobDetail): string {
  if ("program" in command) return quoted(command.program);
  const { text, arguments: given = [] } = command.script;
  return given.length > 0 ? `${text}\n# called with ${quoted(given)}` : text;
}

function Request({ job }: { job: JobDetail }) {
  const { request } = job;
  const { gpus = 1, memory: wanted, time_limit: limit, exclusive, mode, cpus, host_memory: hostMemory } = request.resources ?? {};
  const now = useNow();
  const command = commandOf(job);
  const needs = [
    count(gpus, "GPU"),
    wanted ? `${memory(wanted)} on each` : "",
    exclusive ? "alone" : "",
    mode && mode !== "auto" ? `shared by ${mode}` : "",
    cpus ? count(cpus, "core") : "",
    hostMemory ? `${memory(hostMemory)} of the host` : "",
  ];
  const parameters = Object.entries(request.array?.parameters ?? {}).map(([name, value]) => `${name}=${value}`);
  return (
    <section aria-label="Request">
      {command && <pre class="command">{command}</pre>}
      <dl class="facts">
        <Fact name="User">{job.owner.name}</Fact>
        {request.directory && <Fact name="Directory">{request.directory}</Fact>}
        <Fact name="Needs">{needs.filter(Boolean).join(", ")}</Fact>
        {limit !== null && limit !== undefined && <Fact name="Time limit">{duration(limit)}</Fact>}
        {parameters.length > 0 && <Fact name="Parameters">{parameters.join(", ")}</Fact>}
        <Fact name="Priority">{request.schedule?.priority ?? 0}</Fact>
        {(request.schedule?.after ?? []).length > 0 && (
          <Fact name="After">{request.schedule?.after?.map(after => after.job).join(", ")}</Fact>
        )}
        <Fact name="Submitted">
          <When at={job.submitted} />
        </Fact>
        {job.ended ? (
          <Fact name="Ended">
            <When at={job.ended} />, {duration((job.ended - job.submitted) / 1000)} later
          </Fact>
        ) : (
          <Fact name="In the system for">{duration((now - job.submitted) / 1000)}</Fact>
        )}
        <Fact name="Energy">{energy(job.energy)}</Fact>
        {job.array && (
          <Fact name="Array">
            <a href={to("history", undefined, { array: String(job.array.array) })}>all of array {job.array.array}</a>
          </Fact>
        )}
      </dl>
    </section>
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
  declared: "its user declared it",
  history: "earlier runs of the same showed it",
  static: "from the description of its model",
  "dry-run": "a dry run of its script measured it",
};

function EstimateWords({ job: { estimate } }: { job: JobDetail }) {
  const busy = Object.entries(estimate.utilisation).map(([name, value]) => `${name.toUpperCase()} ${percent(value)}`);
  return (
    <>
      <dl class="facts">
        {estimate.source && <Fact name="Estimated by">{SOURCES[estimate.source] ?? estimate.source}</Fact>}
        {estimate.duration !== null && estimate.duration !== undefined && (
          <Fact name="Expected to take">{duration(estimate.duration)}</Fact>
        )}
        {busy.length > 0 && <Fact name="Expected to keep a GPU busy">{busy.join(", ")}</Fact>}
      </dl>
      {estimate.notes.map(note => (
        <p key={note} class="quiet">
          {note}
        </p>
      ))}
    </>
  );
}

const ATTEMPTS: ColumnOf<AttemptDetail>[] = [
  { name: "Attempt", cell: ({ attempt }) => attempt.number },
  { name: "GPUs", cell: ({ placement }) => <GpuLinks devices={placement.devices.map(({ device }) => device)} /> },
  { name: "Launched", cell: ({ launched }) => <When at={launched} /> },
  {
    name: "Took",
    cell: ({ launched, ended }) => (ended ? duration((ended - launched) / 1000) : <Elapsed since={launched} />),
    number: true,
  },
  {
    name: "Promised",
    cell: ({ placement }) => placement.devices.map(({ promised }) => memory(promised)).join(", ") || UNKNOWN,
    number: true,
  },
  {
    name: "Peak",
    cell: ({ peaks }) =>
      peaks
        .filter(peak => peak > 0)
        .map(memory)
        .join(", ") || UNKNOWN,
    number: true,
  },
  { name: "SMACT", cell: ({ utilisation }) => percent(utilisation.smact), number: true },
  { name: "Energy", cell: attempt => energy(attempt.energy), number: true },
  {
    name: "How it ended",
    room: ROOMY,
    cell: ({ ending, because, whose }) =>
      ending ? (
        <span class="reason">
          <EndingBadge ending={ending} /> {because}
          {whose && whose !== "job" && (
            <span class="quiet">
              {" "}
              (the doing of {{ neighbours: "its neighbours", machine: "the machine", orders: "those who told it to stop" }[whose]})
            </span>
          )}
        </span>
      ) : (
        ""
      ),
  },
];

function Attempts({ job }: { job: JobDetail }) {
  return (
    <section aria-labelledby="attempts-title">
      <h2 id="attempts-title">Attempts</h2>
      <Table
        caption="Attempts"
        columns={ATTEMPTS}
        rows={job.attempts}
        keyOf={({ attempt }) => attempt.number}
        empty="It was not launched yet."
      />
    </section>
  );
}

function Events({ job }: { job: JobDetail }) {
  return (
    <section aria-labelledby="events-title">
      <h2 id="events-title">What happened</h2>
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
