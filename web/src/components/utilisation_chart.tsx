// How busy a GPU was, by metric.

import { line } from "d3-shape";
import { percent } from "../lib/format";
import { exactly } from "../lib/time";
import { type Column, runs, type Track } from "../lib/track";
import { metricColour, useMetrics } from "../live/metrics";
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

const meanOf = (values: Column) => {
  const known = values.filter(value => value !== null);
  return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
};

export function UtilisationChart(props: { track: Track; since: number; until: number; title?: string }) {
  const { track, since, until, title = "Utilisation" } = props;
  const known = Object.entries(track.utilisation).filter(([, column]) => column?.some(value => value !== null));
  const metrics = useMetrics(Object.fromEntries(known)).map(({ id, label }, place) => ({
    label,
    column: track.utilisation[id] ?? [],
    colour: metricColour(place),
  }));
  return (
    <TimeChart
      title={title}
      summary={metrics.map(({ label, column }) => `${label} ${percent(meanOf(column))} on average`).join(", ")}
      at={track.at}
      since={since}
      until={until}
      top={1}
      unit={percent}
      legend={metrics.map(({ label, column, colour }) => ({ key: label, name: label, colour, value: index => percent(column[index]) }))}
      table={{
        columns: ["Time", ...metrics.map(({ label }) => label)],
        rows: () => track.at.map((at, index) => [exactly(at), ...metrics.map(({ column }) => percent(column[index]))]),
      }}
      draw={plane =>
        metrics.map(({ label, column, colour }) => <Curve key={label} at={track.at} values={column} plane={plane} colour={colour} />)
      }
    />
  );
}
