// A GPU: its jobs now and over time, and its utilisation.

import { useState } from "preact/hooks";
import { post } from "../api/client";
import type { GpuDetail, GpuTenant } from "../api/schema";
import { Choices } from "../components/choices";
import { ConfirmDialog } from "../components/dialog";
import { GpuState, isSilent } from "../components/gpu_card";
import { Ago, Fact, JobLink, Loaded, Pending } from "../components/marks";
import { MemoryBar } from "../components/memory_bar";
import { MemoryChart } from "../components/memory_chart";
import { PowerChart } from "../components/power_chart";
import { StaysChart } from "../components/stays_chart";
import { type ColumnOf, ROOMY, Table } from "../components/table";
import { UtilisationChart } from "../components/utilisation_chart";
import { count, deviceName, duration, energy, memory, percent, power, UNKNOWN } from "../lib/format";
import { useObservable } from "../lib/observable";
import { LOST_GPU } from "../lib/words";
import { managerTime } from "../live/clock";
import { type GpuHistory, loadGpuHistory, loadGpus, RECENT } from "../live/gpus";
import { myself } from "../live/manager";
import { useMetrics } from "../live/metrics";
import { type Live, useLive } from "../live/use_live";
import { route, setQuery } from "../router";

const MINUTE = 60_000;
const SPANS = { "10min": RECENT, "1h": 60 * MINUTE, "24h": 1440 * MINUTE, "7d": 10_080 * MINUTE } as const;
type Span = keyof typeof SPANS;
const NAMES: Record<Span, string> = { "10min": "10 min", "1h": "1 h", "24h": "24 h", "7d": "7 d" };

export function GpuPage({ argument }: { argument: string }) {
  const gpus = useLive(loadGpus, ["gpus"]);
  // Loaded in parallel: it takes longer.
  const overTime = useOverTime(argument);
  const gpu = gpus.data?.find(({ device }) => device === argument || deviceName(device) === argument);
  if (!gpus.data) return <Pending problem={gpus.problem} />;
  if (!gpu) return <p class="notice bad">There is no GPU {argument}.</p>;
  return (
    <>
      <GpuHead gpu={gpu} reload={gpus.reload} />
      <section aria-labelledby="tenants-title">
        <h2 id="tenants-title">Jobs now</h2>
        {!gpu.lost && <MemoryBar gpu={gpu} />}
        <Tenants gpu={gpu} />
      </section>
      <OverTime gpu={gpu} {...overTime} />
    </>
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
          <p>{gpu.drained ? "It takes new jobs again." : "It takes no new jobs until you resume it. Jobs that run on it continue."}</p>
        </ConfirmDialog>
      )}
      {gpu.lost && <p class="notice bad">{LOST_GPU}</p>}
      {isSilent(gpu) && (
        <p class="notice bad">The driver calls of this GPU have failed or hung for {duration(gpu.silent_for)}. No new job starts on it.</p>
      )}
      <section aria-label="Figures">
        <dl class="facts">
          <Fact name="Memory">
            {memory(gpu.memory_used)} of {memory(gpu.memory)}
          </Fact>
          <Fact name="Reserved">{memory(gpu.reserved)}</Fact>
          <Fact name="Free to reserve">{memory(gpu.available)}</Fact>
          <Fact name={metrics.map(({ label }) => label).join(", ")}>
            {metrics.map(({ id }) => percent(gpu.utilisation[id])).join(", ")}
          </Fact>
          <Fact name="Power">{power(gpu.power)}</Fact>
          <Fact name="Temperature">{gpu.temperature === null || gpu.temperature === undefined ? UNKNOWN : `${gpu.temperature} °C`}</Fact>
          {gpu.throttling && gpu.throttling.length > 0 && <Fact name="Throttled by">{gpu.throttling.join(", ")}</Fact>}
          <Fact name="Energy">{energy(gpu.energy)}</Fact>
          <Fact name="Sharing">{gpu.mode}</Fact>
          <Fact name="Metrics from">{gpu.counters || UNKNOWN}</Fact>
        </dl>
      </section>
      {gpu.drained_for && <p class="notice bad">The manager drained this GPU because of its faults: {gpu.drained_for}.</p>}
      {gpu.drained && gpu.drained_since && (
        <p class="notice">
          {gpu.drained_by ? `${gpu.drained_by} drained this GPU ` : "This GPU was drained "}
          <Ago at={gpu.drained_since} />.
        </p>
      )}
      {!gpu.lost && gpu.closed.length > 0 && <p class="notice">This GPU takes no more jobs now: {gpu.closed.join("; ")}.</p>}
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
  { name: "Used", cell: tenant => memory(tenant.memory), order: tenant => tenant.memory ?? 0, number: true },
  { name: "Reserved", cell: ({ reserved }) => memory(reserved), order: ({ reserved }) => reserved, number: true },
  { name: "Borrowed", cell: ({ borrowed }) => memory(borrowed), order: ({ borrowed }) => borrowed ?? 0, number: true },
  { name: "Limit", cell: ({ limit }) => memory(limit), order: ({ limit }) => limit ?? 0, number: true },
  { name: "SMACT", cell: ({ smact }) => percent(smact), order: ({ smact }) => smact ?? 0, number: true },
  { name: "Energy", cell: tenant => energy(tenant.energy), order: tenant => tenant.energy ?? 0, number: true },
  { name: "Started", cell: ({ launched }) => <Ago at={launched} />, order: ({ launched }) => launched },
];

function Tenants({ gpu }: { gpu: GpuDetail }) {
  return (
    <>
      <Table
        caption={`Jobs on ${deviceName(gpu.device)}`}
        columns={TENANTS}
        rows={gpu.tenants}
        keyOf={({ attempt }) => attempt.job}
        empty="No job is running on this GPU."
      />
      {!gpu.lost && gpu.foreign > 0 && <p class="quiet">{count(gpu.foreign, "other process", "other processes")}, not started by CARMA</p>}
    </>
  );
}

function useOverTime(device: string): { span: Span; live: Live<GpuHistory> } {
  const { query } = useObservable(route);
  const requested = query.get("span") ?? "";
  const span: Span = requested in SPANS ? (requested as Span) : "10min";
  const load = async (signal: AbortSignal) => loadGpuHistory(device, (await managerTime()) - SPANS[span], undefined, signal);
  const live = useLive(load, ["gpus"], span, span === "10min" ? 2000 : 15_000);
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
