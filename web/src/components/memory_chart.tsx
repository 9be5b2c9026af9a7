// Memory of a GPU over time, stacked by job, against its capacity and the reserved memory.

import { area, curveStepAfter, line } from "d3-shape";
import type { GpuStay } from "../api/schema";
import { count, jobNumber, memory } from "../lib/format";
import { heightAt, type Layer, reservedSteps, stacked } from "../lib/stack";
import { exactly } from "../lib/time";
import { runs, type Track } from "../lib/track";
import { useJobColour } from "../live/colours";
import { type LegendItem, type Plane, TimeChart } from "./chart";
import { JobLink } from "./marks";

/** With more jobs than this, the legend names only jobs that have memory at the pointer. */
const NAMED = 8;

const keyOf = ({ attempt }: Layer) => (attempt ? `${attempt.job} ${attempt.number}` : "others");

type Runs = ReturnType<typeof runs>;

interface Shape {
  layer: Layer;
  colour: string;
  at: readonly number[];
  parts: Runs;
  plane: Plane;
}

function LayerShape({ layer, colour, at, parts, plane }: Shape) {
  const { start, edges } = layer;
  const within = parts.map(([from, to]) => [Math.max(from, start), Math.min(to, start + edges.length)] as const);
  return (
    <g class="layer" style={{ fill: colour }}>
      {within
        .filter(([from, to]) => from < to)
        .map(([from, to]) => {
          const shape = area<[number, number]>()
            .x((_, place) => plane.x(at[from + place] ?? 0))
            .y0(([lower]) => plane.y(lower))
            .y1(([, upper]) => plane.y(upper));
          return <path key={from} d={shape(edges.slice(from - start, to - start)) ?? ""} />;
        })}
    </g>
  );
}

export function MemoryChart(props: { track: Track; stays: GpuStay[]; capacity: number; since: number; until: number }) {
  const { track, stays, capacity, since, until } = props;
  const jobColour = useJobColour();
  const colourOf = ({ attempt }: Layer) => (attempt ? (jobColour(attempt.job) ?? "var(--neutral)") : "var(--others)");
  const layers = stacked(track);
  const parts = runs(track.at);
  const steps = reservedSteps(stays, since, until);
  const most = steps.reduce((top, { reserved }) => Math.max(top, reserved), 0);
  const top = Math.max(capacity, most) * 1.06;
  const reservedAt = (index: number) => steps.findLast(({ at }) => at <= (track.at[index] ?? 0))?.reserved ?? 0;
  const reservedLine = line<{ at: number; reserved: number }>().curve(curveStepAfter);
  const known = new Map(stays.map(stay => [stay.attempt.job, stay]));
  const nameOf = ({ attempt }: Layer) =>
    attempt ? `job ${jobNumber(attempt.job, known.get(attempt.job)?.array)}, attempt ${attempt.number}` : "other processes";
  const legend: LegendItem[] = layers.map(layer => ({
    key: keyOf(layer),
    name: layer.attempt ? (
      <JobLink id={layer.attempt.job} name={known.get(layer.attempt.job)?.name} array={known.get(layer.attempt.job)?.array} />
    ) : (
      nameOf(layer)
    ),
    colour: colourOf(layer),
    named: layer.attempt !== undefined,
    value: index => memory(heightAt(layer, index)),
    shown: index => layers.length <= NAMED || heightAt(layer, index) > 0,
  }));
  legend.push({ key: "reserved", name: "reserved", colour: "var(--reserved)", dashed: true, value: index => memory(reservedAt(index)) });
  legend.push({ key: "capacity", name: "capacity", colour: "var(--bad)", value: () => memory(capacity) });
  const used = track.memory.reduce<number>((peak, value) => Math.max(peak, value ?? 0), 0);
  return (
    <TimeChart
      title="Memory"
      summary={`Peak ${memory(used)} of ${memory(capacity)}, ${count(layers.length, "job")}`}
      at={track.at}
      since={since}
      until={until}
      top={top}
      height={230}
      unit={value => `${Math.round(value / 1024)} GiB`}
      ticks={[0, 0.25, 0.5, 0.75, 1].map(share => share * capacity)}
      legend={legend}
      table={{
        columns: ["Time", "In use", "Reserved", ...layers.map(nameOf)],
        rows: () =>
          track.at.map((at, index) => [
            exactly(at),
            memory(track.memory[index]),
            memory(reservedAt(index)),
            ...layers.map(layer => memory(heightAt(layer, index))),
          ]),
      }}
      draw={plane => (
        <>
          {layers.map(layer => (
            <LayerShape key={keyOf(layer)} layer={layer} colour={colourOf(layer)} at={track.at} parts={parts} plane={plane} />
          ))}
          <line class="capacity" x1={plane.x(since)} x2={plane.x(until)} y1={plane.y(capacity)} y2={plane.y(capacity)} />
          {["limit halo", "limit"].map(kind => (
            <path key={kind} class={kind} d={reservedLine.x(({ at }) => plane.x(at)).y(({ reserved }) => plane.y(reserved))(steps) ?? ""} />
          ))}
        </>
      )}
    />
  );
}
