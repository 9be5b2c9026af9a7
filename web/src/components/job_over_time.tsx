// A job's memory and utilisation, and the utilisation of its GPU, over time: for one attempt on one GPU.

import { scaleLinear } from "d3-scale";
import { curveStepAfter, line } from "d3-shape";
import { useState } from "preact/hooks";
import { get } from "../api/client";
import type { AttemptDetail, AttemptId, AttemptUtilisation, GpuStay, JobDetail } from "../api/schema";
import { deviceName, memory } from "../lib/format";
import { exactly } from "../lib/time";
import { type Column, fromSpans } from "../lib/track";
import { useJobColour } from "../live/colours";
import { type GpuHistory, loadGpuHistory, RECENT } from "../live/gpus";
import { useLive } from "../live/use_live";
import { type Plane, TimeChart } from "./chart";
import { Loaded } from "./marks";
import { Curve, UtilisationChart } from "./utilisation_chart";

const GIB = 1024;
/** Fewer points are no curve. */
const LEAST_POINTS = 3;

/** An attempt on a device. */
interface Part {
  key: string;
  name: string;
  attempt: AttemptDetail;
  device: string;
}

/** All attempts on all their devices, the latest attempt first. */
function partsOf({ attempts }: JobDetail): Part[] {
  return attempts.toReversed().flatMap(attempt =>
    attempt.placement.devices.map(({ device }) => ({
      key: `${attempt.attempt.number} ${device}`,
      name: `${deviceName(device)}${attempts.length > 1 ? `, attempt ${attempt.attempt.number}` : ""}`,
      attempt,
      device,
    })),
  );
}

export function JobOverTime({ job }: { job: JobDetail }) {
  const parts = partsOf(job);
  const [chosen, setChosen] = useState<string>();
  const part = parts.find(({ key }) => key === chosen) ?? parts[0];
  if (!part) return null;
  return (
    <section aria-labelledby="over-time-title">
      <header class="section-head">
        <h2 id="over-time-title">Over time</h2>
        {parts.length > 1 && (
          <label class="inline">
            GPU
            <select value={part.key} onChange={event => setChosen(event.currentTarget.value)}>
              {parts.map(({ key, name }) => (
                <option key={key} value={key}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )}
      </header>
      <PartOverTime key={part.key} part={part} />
    </section>
  );
}

function PartOverTime({ part: { attempt, device, key } }: { part: Part }) {
  const { launched, ended } = attempt;
  const { job, number } = attempt.attempt;
  const load = async (signal: AbortSignal) => {
    const [history, all] = await Promise.all([
      loadGpuHistory(device, launched, ended ?? undefined, signal),
      get("/v1/jobs/{job}/utilisation", { path: { job }, signal }),
    ]);
    return { history, own: all.find(one => one.device === device && one.attempt.number === number) };
  };
  const live = useLive(load, ended ? [] : ["gpus"], `${key} ${ended ?? ""}`, 5000);
  return <Loaded live={live}>{({ history, own }) => <Charts history={history} own={own} attempt={attempt.attempt} />}</Loaded>;
}

const isAttempt = (attempt: AttemptId) => (other: { attempt: AttemptId }) =>
  other.attempt.job === attempt.job && other.attempt.number === attempt.number;

interface Memory {
  at: number[];
  memory: Column;
  /** The values hold until the next; otherwise they are samples. */
  steps: boolean;
}

/** The memory of an attempt: samples of the last minutes, else the times at which it changed. */
function memoryOf({ track, since, until }: GpuHistory, stay: GpuStay | undefined): Memory {
  const running = !stay?.ended && until - since <= RECENT;
  if (!stay || running || stay.memory.length === 0) {
    return {
      at: track.at,
      memory: track.tenants.find(({ attempt }) => stay && isAttempt(stay.attempt)({ attempt }))?.memory ?? [],
      steps: false,
    };
  }
  const last = stay.memory.at(-1);
  return {
    at: [...stay.memory.map(({ at }) => at), until],
    memory: [...stay.memory.map(step => step.memory), last?.memory ?? null],
    steps: true,
  };
}

/** A line of values that hold until the next. */
function StepCurve({ at, values, plane, colour }: { at: number[]; values: Column; plane: Plane; colour: string }) {
  const path = line<number>()
    .curve(curveStepAfter)
    .x(index => plane.x(at[index] ?? 0))
    .y(index => plane.y(values[index] ?? 0));
  return <path class="curve" style={{ stroke: colour }} d={path(at.map((_, index) => index)) ?? ""} />;
}

function Charts({ history, own, attempt }: { history: GpuHistory; own: AttemptUtilisation | undefined; attempt: AttemptId }) {
  const { track, stays, since, until } = history;
  const stay = stays.find(isAttempt(attempt));
  const colour = useJobColour()(attempt.job) ?? "var(--neutral)";
  const { at, memory: column, steps } = memoryOf(history, stay);
  const Line = steps ? StepCurve : Curve;
  const reserved = stay?.reserved ?? 0;
  const peak = column.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
  const top = Math.max(reserved, peak, 100) * 1.1;
  return (
    <div class="charts">
      <TimeChart
        title="Memory of this job"
        summary={`Peak ${memory(peak)}, reserved ${memory(reserved)}`}
        at={at}
        since={since}
        until={until}
        top={top}
        unit={value => `${value / GIB} GiB`}
        ticks={scaleLinear([0, top / GIB], [0, 1])
          .ticks(4)
          .map(value => value * GIB)}
        legend={[
          { key: "used", name: "used", colour, value: index => memory(column[index]) },
          { key: "reserved", name: "reserved", colour: "var(--reserved)", dashed: true, value: () => memory(reserved) },
        ]}
        table={{ columns: ["Time", "Used"], rows: () => at.map((time, index) => [exactly(time), memory(column[index])]) }}
        draw={plane => (
          <>
            <Line at={at} values={column} plane={plane} colour={colour} />
            <line class="limit" x1={plane.x(since)} x2={plane.x(until)} y1={plane.y(reserved)} y2={plane.y(reserved)} />
          </>
        )}
      />
      {own && (
        <UtilisationChart track={fromSpans(own, until)} since={since} until={until} title="Utilisation of the GPU by this job (its part)" />
      )}
      {/* Of an ended job, the manager has only means of minutes: of a short one they are no curve. */}
      {track.at.length >= LEAST_POINTS && (
        <UtilisationChart
          track={track}
          since={since}
          until={until}
          title={`Utilisation of the GPU, all jobs on it${track.byMinute ? " (means of minutes)" : ""}`}
        />
      )}
    </div>
  );
}
