// The frame of a chart over time: axes, a legend with the values at the pointer, and a table of the data.

import { scaleLinear, scaleTime } from "d3-scale";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { tick } from "../lib/time";
import { useWidth } from "./use_width";

const LEFT = 52;
/** Room for half a label of the time axis. */
const RIGHT = 22;
const BOTTOM = 20;
const TOP = 6;

export interface Plane {
  x: (at: number) => number;
  y: (value: number) => number;
  width: number;
  height: number;
}

export interface LegendItem {
  name: ComponentChildren;
  key: string;
  /** A CSS colour. */
  colour: string;
  /** The value at an index of `at`. */
  value: (index: number) => string;
  dashed?: boolean;
  /** Whether the legend lists it at an index; unset: always. */
  shown?: (index: number) => boolean;
  /** The name shows the colour itself. */
  named?: boolean;
}

interface ChartTable {
  columns: string[];
  rows: () => string[][];
}

/** The index of the time that is closest. */
function nearest(at: readonly number[], time: number): number {
  let best = 0;
  at.forEach((other, index) => {
    if (Math.abs(other - time) < Math.abs((at[best] ?? 0) - time)) best = index;
  });
  return best;
}

export function TimeChart(props: {
  title: string;
  /** The text for screen readers. */
  summary: string;
  at: readonly number[];
  since: number;
  until: number;
  top: number;
  unit: (value: number) => string;
  /** Values at which lines are drawn; unset: a few round ones. */
  ticks?: number[];
  legend: LegendItem[];
  table: ChartTable;
  height?: number;
  draw: (plane: Plane) => ComponentChildren;
}) {
  const { title, summary, at, since, until, top, unit, ticks, legend, table, height: outer = 170, draw } = props;
  const [box, width] = useWidth();
  const [pointed, setPointed] = useState<number>();
  const x = scaleTime([since, until], [LEFT, Math.max(LEFT + 1, width - RIGHT)]);
  const y = scaleLinear([0, top], [outer - BOTTOM, TOP]);
  const times = x.ticks(Math.max(2, Math.floor(width / 110)));
  const seconds = times.some(time => time.getSeconds() !== 0);
  const index = pointed === undefined || pointed >= at.length ? at.length - 1 : pointed;
  const shown = at[index];
  const point = (event: PointerEvent) => {
    const left = event.currentTarget instanceof Element ? event.currentTarget.getBoundingClientRect().left : 0;
    setPointed(nearest(at, x.invert(event.clientX - left).getTime()));
  };
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <Legend items={legend} index={index} />
      </figcaption>
      <div ref={box}>
        {width > 0 && (
          <svg
            role={at.length > 0 ? "img" : "group"}
            aria-label={`${title}. ${summary}`}
            width={width}
            height={outer}
            onPointerMove={point}
            onPointerLeave={() => setPointed(undefined)}
          >
            {(ticks ?? y.ticks(4)).map(value => (
              <g key={value}>
                <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y(value)} y2={y(value)} />
                <text class="tick" x={LEFT - 6} y={y(value)} dy="0.32em" text-anchor="end">
                  {unit(value)}
                </text>
              </g>
            ))}
            {times.map(time => (
              <text key={time.getTime()} class="tick" x={x(time)} y={outer - 5} text-anchor="middle">
                {tick(time, seconds)}
              </text>
            ))}
            {draw({ x: time => x(time), y: value => y(value), width, height: outer - BOTTOM })}
            {pointed !== undefined && shown !== undefined && (
              <line class="pointer" x1={x(shown)} x2={x(shown)} y1={TOP} y2={outer - BOTTOM} />
            )}
          </svg>
        )}
      </div>
      <AsTable title={title} table={table} />
    </figure>
  );
}

function Legend({ items, index }: { items: LegendItem[]; index: number }) {
  return (
    <ul class="legend">
      {items
        .filter(({ shown }) => shown?.(index) ?? true)
        .map(({ key, name, colour, value, dashed, named }) => (
          <li key={key}>
            {!named && <span class={dashed ? "swatch dashed" : "swatch"} style={{ "--colour": colour }} />}
            {name} <span class="value">{index >= 0 ? value(index) : ""}</span>
          </li>
        ))}
    </ul>
  );
}

/** The data of a chart. Rows are made when the table is opened. */
export function AsTable({ title, table }: { title: string; table: ChartTable }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="as-table" onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>Show as table</summary>
      {open && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
        <section class="table-box tall" tabIndex={0} aria-label={`${title} as a table`}>
          <table>
            <thead>
              <tr>
                {table.columns.map(column => (
                  <th key={column} scope="col">
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {table.rows().map(row => (
                <tr key={row.join("|")}>
                  {row.map((cell, place) => (
                    <td key={table.columns[place]}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </details>
  );
}
