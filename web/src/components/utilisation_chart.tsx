// How busy a GPU was: SMACT, SMOCC, DRAMA.

import { line } from "d3-shape";
import { percent } from "../lib/format";
import { exactly } from "../lib/time";
import { type Column, runs, type Track } from "../lib/track";
import { type Plane, TimeChart } from "./chart";

/** A curve for each run without a gap. */
export function Curve({ at, values, plane, colour }: { at: number[]; values: Column; plane: Plane; colour: string }) {
  const path = line<number>()
    .defined(index => values[index] !== null && values[index] !== undefined)
    .x(index => plane.x(at[index] ?? 0))
    .y(index => plane.y(values[index] ?? 0));
  return (
    <>
      {runs(at).map(([start, end]) => (
        <path
          key={start}
          class="curve"
          style={{ stroke: colour }}
          d={path(Array.from({ length: end - start }, (_, place) => start + place)) ?? ""}
        />
      ))}
    </>
  );
}

const METRICS = [
  { name: "SMACT", column: "smact", colour: "var(--smact)" },
  { name: "SMOCC", column: "smocc", colour: "var(--smocc)" },
  { name: "DRAMA", column: "drama", colour: "var(--drama)" },
] as const;

const meanOf = (values: Column) => {
  const known = values.filter(value => value !== null);
  return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
};

export function UtilisationChart({ track, since, until }: { track: Track; since: number; until: number }) {
  const summary = METRICS.map(({ name, column }) => `${name} ${percent(meanOf(track[column]))} on average`).join(", ");
  return (
    <TimeChart
      title="Utilisation"
      summary={summary}
      at={track.at}
      since={since}
      until={until}
      top={1}
      unit={percent}
      legend={METRICS.map(({ name, column, colour }) => ({ key: name, name, colour, value: index => percent(track[column][index]) }))}
      table={{
        columns: ["Time", ...METRICS.map(({ name }) => name)],
        rows: () => track.at.map((at, index) => [exactly(at), ...METRICS.map(({ column }) => percent(track[column][index]))]),
      }}
      draw={plane =>
        METRICS.map(({ name, column, colour }) => <Curve key={name} at={track.at} values={track[column]} plane={plane} colour={colour} />)
      }
    />
  );
}
