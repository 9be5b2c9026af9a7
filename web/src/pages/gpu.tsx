// A GPU: its jobs now and over time, and its utilisation.

import { useMemo, useState } from "preact/hooks";
import { get, post } from "../api/client";
import type { GpuDetail, GpuStay, GpuTenant } from "../api/schema";
import { Choices } from "../components/choices";
import { ConfirmDialog } from "../components/dialog";
import { GpuState } from "../components/gpu_card";
import { Ago, Fact, JobLink, Loaded, Pending } from "../components/marks";
import { MemoryBar } from "../components/memory_bar";
import { MemoryChart } from "../components/memory_chart";
import { PowerChart } from "../components/power_chart";
import { StaysChart } from "../components/stays_chart";
import { type ColumnOf, ROOMY, Table } from "../components/table";
import { Colours } from "../components/use_job_colour";
import { UtilisationChart } from "../components/utilisation_chart";
import { deviceName, energy, memory, percent, power, UNKNOWN } from "../lib/format";
import { coloursOnGpus, coloursOverTime } from "../lib/job_colours";
import { useObservable } from "../lib/observable";
import { fromSamples, fromTimeline, type Track } from "../lib/track";
import { managerTime } from "../live/clock";
import { myself } from "../live/manager";
import { useMetrics } from "../live/metrics";
import { type Live, useLive } from "../live/use_live";
import { route, setQuery } from "../router";

const MINUTE = 60_000;
const SPANS = { "10min": 10 * MINUTE, "1h": 60 * MINUTE, "24h": 1440 * MINUTE, "7d": 10_080 * MINUTE } as const;
type Span = keyof typeof SPANS;
const NAMES: Record<Span, string> = { "10min": "10 min", "1h": "1 h", "24h": "24 h", "7d": "7 d" };
/** Points of a chart. */
const POINTS = 400;

export function GpuPage({ argument }: { argument: string }) {
  const gpus = useLive(signal => get("/v1/gpus", { signal }), ["gpus"]);
  // Loaded in parallel: it takes longer.
  const overTime = useOverTime(argument);
  const gpu = gpus.data?.find(({ device }) => device === argument || deviceName(device) === argument);
  const stays = overTime.live.data?.stays;
  const colours = useMemo(() => {
    const here = [...coloursOnGpus(gpus.data ?? [])].filter(([job]) => gpu?.tenants.some(({ attempt }) => attempt.job === job));
    return coloursOverTime(stays ?? [], new Map(here));
  }, [gpus.data, gpu, stays]);
  if (!gpus.data) return <Pending problem={gpus.problem} />;
  if (!gpu) return <p class="notice bad">The manager has no GPU {argument}.</p>;
  return (
    <Colours.Provider value={colours}>
      <GpuHead gpu={gpu} reload={gpus.reload} />
      <section aria-labelledby="tenants-title">
        <h2 id="tenants-title">On it now</h2>
        <MemoryBar gpu={gpu} />
        <Tenants gpu={gpu} />
      </section>
      <OverTime gpu={gpu} {...overTime} />
    </Colours.Provider>
  );
}

function GpuHead({ gpu, reload }: { gpu: GpuDetail; reload: () => void }) {
  const me = useObservable(myself);
  const metrics = useMetrics(gpu.utilisation);
  const [asking, setAsking] = useState(false);
  const name = deviceName(gpu.device);
  const verb = gpu.drained ? "Resume" : "Drain";
  const act = async () => {
    await post(gpu.drained ? "/v1/gpus/{gpu}/resume" : "/v1/gpus/{gpu}/drain", { path: { gpu: gpu.device } });
    reload();
  };
  return (
    <>
      <div class="job-head">
        <h1>{name}</h1>
        <GpuState gpu={gpu} />
        <span class="quiet">
          {gpu.name}
          {gpu.node && ` on ${gpu.node}`}
        </span>
        {me?.operator && (
          <div class="buttons">
            <button type="button" onClick={() => setAsking(true)}>
              {verb}
            </button>
          </div>
        )}
      </div>
      {asking && (
        <ConfirmDialog title={`${verb} ${name}?`} confirm={`${verb} ${name}`} act={act} close={() => setAsking(false)}>
          <p>{gpu.drained ? "It takes jobs again." : "It takes nothing new until it is resumed; jobs on it go on."}</p>
        </ConfirmDialog>
      )}
      <section aria-label="Figures">
        <dl class="facts">
          <Fact name="Memory">
            {memory(gpu.memory_used)} of {memory(gpu.memory)}
          </Fact>
          <Fact name="Reserved">{memory(gpu.promised)}</Fact>
          <Fact name="Available">{memory(gpu.available)}</Fact>
          <Fact name={metrics.map(({ label }) => label).join(", ")}>
            {metrics.map(({ id }) => percent(gpu.utilisation[id])).join(", ")}
          </Fact>
          <Fact name="Power">{power(gpu.power)}</Fact>
          <Fact name="Temperature">{gpu.temperature === null || gpu.temperature === undefined ? UNKNOWN : `${gpu.temperature} °C`}</Fact>
          {gpu.throttling && gpu.throttling.length > 0 && <Fact name="Throttled by">{gpu.throttling.join(", ")}</Fact>}
          <Fact name="Energy so far">{energy(gpu.energy)}</Fact>
          <Fact name="Shared by">{gpu.mode}</Fact>
          <Fact name="Counters from">{gpu.counters}</Fact>
        </dl>
      </section>
      {gpu.drained_for && <p class="notice bad">The manager drained it because of its faults: {gpu.drained_for}.</p>}
      {gpu.closed.length > 0 && <p class="notice">It takes no other job now: {gpu.closed.join("; ")}.</p>}
    </>
  );
}

const TENANTS: ColumnOf<GpuTenant>[] = [
  {
    name: "Job",
    cell: ({ attempt, name, array }) => <JobLink id={attempt.job} name={name} array={array} />,
    order: ({ attempt }) => attempt.job,
    room: ROOMY,
  },
  { name: "User", cell: ({ user }) => user, order: ({ user }) => user },
  { name: "Attempt", cell: ({ attempt }) => attempt.number, number: true },
  { name: "Memory", cell: tenant => memory(tenant.memory), order: tenant => tenant.memory ?? 0, number: true },
  { name: "Reserved", cell: ({ promised }) => memory(promised), order: ({ promised }) => promised, number: true },
  { name: "Borrowed", cell: ({ borrowed }) => memory(borrowed), order: ({ borrowed }) => borrowed ?? 0, number: true },
  { name: "Limit", cell: ({ limit }) => memory(limit), order: ({ limit }) => limit ?? 0, number: true },
  { name: "SMACT", cell: ({ smact }) => percent(smact), order: ({ smact }) => smact ?? 0, number: true },
  { name: "Energy", cell: tenant => energy(tenant.energy), order: tenant => tenant.energy ?? 0, number: true },
  { name: "Launched", cell: ({ launched }) => <Ago at={launched} />, order: ({ launched }) => launched },
];

function Tenants({ gpu }: { gpu: GpuDetail }) {
  return (
    <>
      <Table
        caption={`Jobs on ${deviceName(gpu.device)}`}
        columns={TENANTS}
        rows={gpu.tenants}
        keyOf={({ attempt }) => attempt.job}
        empty="No job of ours."
      />
      {gpu.foreign > 0 && <p class="quiet">{gpu.foreign} processes on it are not of our jobs.</p>}
    </>
  );
}

interface GpuHistory {
  track: Track;
  stays: GpuStay[];
  since: number;
  until: number;
}

async function loadGpuHistory(device: string, span: Span, signal: AbortSignal): Promise<GpuHistory> {
  const until = await managerTime();
  const since = Math.floor(until - SPANS[span]);
  const [line, samples] = await Promise.all([
    get("/v1/gpus/{gpu}/timeline", { path: { gpu: device }, query: { since }, signal }),
    span === "10min" ? get("/v1/recent", { query: { gpu: device, points: POINTS }, signal }) : undefined,
  ]);
  const track = samples ? samples[0] && fromSamples(samples[0], POINTS) : fromTimeline(line, POINTS);
  const empty: Track = { at: [], memory: [], utilisation: {}, power: [], tenants: [] };
  // A sample may be newer than `until`.
  const latest = Math.max(line.until, until, track?.at.at(-1) ?? 0);
  return { track: track ?? empty, stays: line.stays, since, until: latest };
}

function useOverTime(device: string): { span: Span; live: Live<GpuHistory> } {
  const { query } = useObservable(route);
  const requested = query.get("span") ?? "";
  const span: Span = requested in SPANS ? (requested as Span) : "10min";
  const live = useLive(signal => loadGpuHistory(device, span, signal), ["gpus"], span, span === "10min" ? 2000 : 15_000);
  return { span, live };
}

function OverTime({ gpu, span, live }: { gpu: GpuDetail; span: Span; live: Live<GpuHistory> }) {
  return (
    <section aria-labelledby="over-time-title">
      <header class="section-head">
        <h2 id="over-time-title">Over time</h2>
        <Choices label="Span" options={NAMES} chosen={span} choose={chosen => setQuery({ span: chosen })} />
      </header>
      <Loaded live={live}>{data => <Charts gpu={gpu} {...data} />}</Loaded>
    </section>
  );
}

function Charts({ gpu, track, stays, since, until }: GpuHistory & { gpu: GpuDetail }) {
  return (
    <div class="charts">
      <div class="whole">
        <MemoryChart track={track} stays={stays} capacity={gpu.memory} since={since} until={until} />
      </div>
      <div class="whole">
        <StaysChart stays={stays} since={since} until={until} />
      </div>
      <UtilisationChart track={track} since={since} until={until} />
      <PowerChart track={track} since={since} until={until} />
    </div>
  );
}
