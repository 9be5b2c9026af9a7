// The overview: the manager, its GPUs, running and waiting jobs, live events.

import { get } from "../api/client";
import type { GpuDetail, Status } from "../api/schema";
import { GpuCard } from "../components/gpu_card";
import { JobsTable } from "../components/jobs_table";
import { Ago, EndingBadge, Fact, JobLink, Pending, When } from "../components/marks";
import { count, duration, memory, power } from "../lib/format";
import { useObservable } from "../lib/observable";
import { liveEvents } from "../live/feed";
import { loadGpus } from "../live/gpus";
import { hasCluster, managerStatus, upFor } from "../live/manager";
import { useLive } from "../live/use_live";
import { to } from "../router";
import { loadQueue, partsOf } from "./queue";

/** More GPUs than this get smaller cards. */
const ROOMY = 8;
const SHOWN = 10;
/** Unfinished jobs of each kind: an array is one row. */
const LOADED = 100;
const POINTS = 60;

export function Glance() {
  const status = useObservable(managerStatus);
  const gpus = useLive(loadGpus, ["gpus"]);
  return (
    <>
      <h1>Overview</h1>
      {status && <ManagerFacts status={status} />}
      {gpus.data ? <Gpus list={gpus.data} /> : <Pending problem={gpus.problem} />}
      <Jobs />
      <div class="columns">
        <Finished />
        <LiveEvents />
      </div>
    </>
  );
}

function ManagerFacts({ status }: { status: Status }) {
  const condition = status.draining ? "draining, starts no more jobs" : status.observes ? "observing, starts no jobs" : "active";
  return (
    <section aria-label="Manager">
      {status.problems.length > 0 && (
        <ul class="notice bad" aria-label="Problems">
          {status.problems.map(trouble => (
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
            <a href={to("servers")}>{count(status.servers ?? 0, "server")}</a>, {count(status.pools ?? 0, "pool")}
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
  const present = list.filter(({ lost }) => !lost);
  const used = present.reduce((sum, gpu) => sum + (gpu.memory_used ?? 0), 0);
  const all = present.reduce((sum, gpu) => sum + gpu.memory, 0);
  const drawn = present.reduce((sum, gpu) => sum + (gpu.power ?? 0), 0);
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
          <span class="key-others" aria-hidden="true" /> other processes
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
  const queue = useLive(signal => loadQueue({ each: LOADED }, signal), ["jobs"]);
  if (!queue.data) return <Pending problem={queue.problem} />;
  const { counts, jobs } = queue.data;
  const parts = partsOf(jobs);
  const more = (number: number) => (number > SHOWN ? <a href={to("queue")}>show all</a> : null);
  return (
    <>
      <section aria-labelledby="running-title">
        <header class="section-head">
          <h2 id="running-title">Running</h2>
          <p class="quiet">
            {count(counts.running, "job")} {more(counts.running)}
          </p>
        </header>
        <JobsTable caption="Running jobs" kind="running" rows={parts.running} most={SHOWN} empty="No job is running." />
      </section>
      <section aria-labelledby="waiting-title">
        <header class="section-head">
          <h2 id="waiting-title">Waiting</h2>
          <p class="quiet">
            {count(counts.waiting, "job")} {more(counts.waiting)}
            {counts.held > 0 && (
              <>
                {" "}
                and <a href={to("queue", undefined, { state: "held" })}>{counts.held} held</a>
              </>
            )}
          </p>
        </header>
        <JobsTable caption="Waiting jobs" kind="waiting" rows={parts.waiting} most={SHOWN} empty="No job is waiting." />
      </section>
    </>
  );
}

function Finished() {
  const latest = useLive(signal => get("/v1/history", { query: { order: "ended", limit: SHOWN }, signal }), ["jobs"]);
  return (
    <section aria-labelledby="finished-title">
      <header class="section-head">
        <h2 id="finished-title">Recently finished</h2>
        <a href={to("history", undefined, { outcome: "failed" })}>failed jobs</a>
        <a href={to("history")}>all jobs</a>
      </header>
      {!latest.data && <Pending problem={latest.problem} />}
      {latest.data?.length === 0 && <p class="quiet">No job has finished yet.</p>}
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
    <section aria-labelledby="live-title">
      <header class="section-head">
        <h2 id="live-title">Live events</h2>
      </header>
      {latest.length === 0 && <p class="quiet">New events appear here.</p>}
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
