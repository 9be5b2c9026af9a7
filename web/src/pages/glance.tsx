// The overview: the manager, its GPUs, running and waiting jobs, live events.

import { useMemo } from "preact/hooks";
import { get } from "../api/client";
import type { GpuDetail, QueueRow, Status } from "../api/schema";
import { GpuCard } from "../components/gpu_card";
import { JobsTable } from "../components/jobs_table";
import { Ago, EndingBadge, Fact, JobLink, Pending, When } from "../components/marks";
import { Colours } from "../components/use_job_colour";
import { count, duration, memory, power } from "../lib/format";
import { coloursOnGpus } from "../lib/job_colours";
import { useObservable } from "../lib/observable";
import { liveEvents } from "../live/feed";
import { hasCluster, managerStatus, upFor } from "../live/manager";
import { useLive } from "../live/use_live";
import { to } from "../router";

/** More GPUs than this get smaller cards. */
const ROOMY = 8;
const SHOWN = 10;
const POINTS = 60;

export function Glance() {
  const status = useObservable(managerStatus);
  const gpus = useLive(signal => get("/v1/gpus", { signal }), ["gpus"]);
  const colours = useMemo(() => coloursOnGpus(gpus.data ?? []), [gpus.data]);
  return (
    <Colours.Provider value={colours}>
      <h1>{hasCluster(status) ? "Servers" : "Server"} at a glance</h1>
      {status && <ManagerFacts status={status} />}
      {gpus.data ? <Gpus list={gpus.data} /> : <Pending problem={gpus.problem} />}
      <Jobs />
      <div class="columns">
        <Ended />
        <LiveEvents />
      </div>
    </Colours.Provider>
  );
}

function ManagerFacts({ status }: { status: Status }) {
  const condition = status.draining ? "draining: launches nothing more" : status.observes ? "observes: launches nothing" : "launches jobs";
  return (
    <section aria-label="The manager">
      {status.troubles.length > 0 && (
        <ul class="notice bad" aria-label="Troubles">
          {status.troubles.map(trouble => (
            <li key={trouble}>{trouble}</li>
          ))}
        </ul>
      )}
      <dl class="facts">
        <Fact name="Manager">
          {condition}, up {duration(upFor(status))}
        </Fact>
        <Fact name="GPUs">
          {status.gpus}
          {status.emulated && `, emulated${status.speed === 1 ? "" : ` at ${status.speed}× speed`}`}
        </Fact>
        {hasCluster(status) && (
          <Fact name="Servers">
            <a href={to("servers")}>{count(status.servers ?? 0, "server")} of agents</a>, {count(status.pools ?? 0, "pool")}
          </Fact>
        )}
        <Fact name="Policy">{status.policy}</Fact>
        <Fact name="Jobs">
          {status.jobs.running} running, {status.jobs.waiting} waiting, {status.jobs.held} held
        </Fact>
      </dl>
    </section>
  );
}

function Gpus({ list }: { list: GpuDetail[] }) {
  const samples = useLive(signal => get("/v1/recent", { query: { points: POINTS }, signal }), ["gpus"], "", 5000);
  const used = list.reduce((sum, gpu) => sum + (gpu.memory_used ?? 0), 0);
  const all = list.reduce((sum, gpu) => sum + gpu.memory, 0);
  const drawn = list.reduce((sum, gpu) => sum + (gpu.power ?? 0), 0);
  const dense = list.length > ROOMY;
  return (
    <section aria-labelledby="gpus-title">
      <header class="section-head">
        <h2 id="gpus-title">GPUs</h2>
        <p class="quiet">
          {memory(used)} of {memory(all)} in use, {power(drawn)}
        </p>
        <p class="key quiet">
          <span class="key-reserved" aria-hidden="true" /> reserved
          <span class="key-others" aria-hidden="true" /> not of our jobs
        </p>
      </header>
      {list.length === 0 && <p class="quiet">The manager has no GPUs.</p>}
      <ul class={dense ? "gpu-grid dense" : "gpu-grid"}>
        {list.map(gpu => (
          <GpuCard key={gpu.device} gpu={gpu} dense={dense} samples={samples.data?.find(({ device }) => device === gpu.device)} />
        ))}
      </ul>
    </section>
  );
}

function Jobs() {
  const queue = useLive(signal => get("/v1/queue", { query: { each: SHOWN }, signal }), ["jobs"]);
  if (!queue.data) return <Pending problem={queue.problem} />;
  const { counts, jobs } = queue.data;
  const runs = (row: QueueRow) => row.state === "running" || row.state === "starting";
  const running = jobs.filter(runs).slice(0, SHOWN);
  const waiting = jobs.filter(row => !runs(row)).slice(0, SHOWN);
  const left = (shown: number, number: number) => (number > shown ? <a href={to("queue")}>all {number}</a> : null);
  return (
    <>
      <section aria-labelledby="running-title">
        <header class="section-head">
          <h2 id="running-title">Running</h2>
          <p class="quiet">
            {count(counts.running, "job")} {left(running.length, counts.running)}
          </p>
        </header>
        <JobsTable caption="Running jobs" kind="running" rows={running} empty="No job runs." />
      </section>
      <section aria-labelledby="waiting-title">
        <header class="section-head">
          <h2 id="waiting-title">Waiting</h2>
          <p class="quiet">
            {count(counts.waiting + counts.held, "job")} {left(waiting.length, counts.waiting + counts.held)}
          </p>
        </header>
        <JobsTable caption="Waiting jobs" kind="waiting" rows={waiting} empty="No job waits." />
      </section>
    </>
  );
}

function Ended() {
  const latest = useLive(signal => get("/v1/history", { query: { order: "ended", limit: SHOWN }, signal }), ["jobs"]);
  return (
    <section aria-labelledby="ended-title">
      <header class="section-head">
        <h2 id="ended-title">Lately over</h2>
        <a href={to("history")}>history</a>
      </header>
      {!latest.data && <Pending problem={latest.problem} />}
      {latest.data?.length === 0 && <p class="quiet">No job has ended yet.</p>}
      <ul class="lines">
        {latest.data?.map(job => (
          <li key={job.id}>
            <JobLink id={job.id} name={job.name} array={job.array} />
            {job.ending && <EndingBadge ending={job.ending} />}
            <span class="quiet right">{job.ended && <Ago at={job.ended} />}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function LiveEvents() {
  const latest = useObservable(liveEvents).slice(0, 2 * SHOWN);
  return (
    <section aria-labelledby="happened-title">
      <header class="section-head">
        <h2 id="happened-title">Since this page is open</h2>
      </header>
      {latest.length === 0 && <p class="quiet">Nothing has happened yet.</p>}
      <ul class="lines events" aria-live="polite" aria-relevant="additions">
        {latest.map(({ at, text, job }, index) => (
          <li key={`${at} ${latest.length - index} ${text}`}>
            <span class="quiet">
              <When at={at} />
            </span>
            <span>{job === undefined ? text : <a href={to("job", job)}>{text}</a>}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
