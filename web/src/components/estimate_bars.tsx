// A job's expected memory, against the reserved and the used memory.

import type { AttemptDetail, EstimateDetail } from "../api/schema";
import { memory } from "../lib/format";
import { AsTable } from "./chart";

/** Shades from dark to light. */
const SHADES = 8;
const shade = (place: number): string => `color-mix(in oklab, var(--busy) ${100 - (80 / SHADES) * (place % SHADES)}%, var(--raised))`;

interface Row {
  name: string;
  /** Filled from the first to the second. */
  fill?: [number, number];
  parts?: { name: string; memory: number }[];
  /** The position of the line across the bar. */
  mark?: number;
  text: string;
  colour: string;
}

function expectedRow({ expected, upper, declared, parts }: EstimateDetail): Row[] {
  const rows: Row[] = [];
  if (declared !== null && declared !== undefined) {
    rows.push({ name: "Declared", fill: [0, declared], text: memory(declared), colour: "var(--neutral)" });
  }
  if (expected !== null && expected !== undefined) {
    const interval = upper !== null && upper !== undefined ? `, upper bound ${memory(upper)}` : "";
    rows.push({
      name: "Expected",
      fill: [0, expected],
      ...(parts && parts.length > 0 ? { parts } : {}),
      ...(upper ? { mark: upper } : {}),
      text: `${memory(expected)}${interval}`,
      colour: "var(--busy)",
    });
  }
  return rows;
}

function attemptRow({ attempt, placement, peaks }: AttemptDetail): Row {
  const reserved = Math.max(0, ...placement.devices.map(device => device.reserved));
  const peak = Math.max(0, ...peaks);
  const over = peak > reserved;
  return {
    name: `Attempt ${attempt.number}`,
    fill: [0, peak],
    mark: reserved,
    text: `${peak > 0 ? `peak ${memory(peak)}` : "no sample"}, reserved ${memory(reserved)}${over ? `: ${memory(peak - reserved)} above the reservation` : ""}`,
    colour: over ? "var(--memory)" : "var(--good)",
  };
}

export function EstimateBars({ estimate, attempts }: { estimate: EstimateDetail; attempts: AttemptDetail[] }) {
  const rows = [...expectedRow(estimate), ...attempts.filter(({ placement }) => placement.devices.length > 0).map(attemptRow)];
  const top = Math.max(1, ...rows.flatMap(({ fill, mark }) => [fill?.[1] ?? 0, mark ?? 0]));
  const share = (value: number) => `${(100 * value) / top}%`;
  if (rows.length === 0) return <p class="quiet">There is no estimate, and nothing has been measured yet.</p>;
  return (
    <>
      <ul class="estimate-bars">
        {rows.map(({ name, fill, parts, mark, text, colour }) => (
          <li key={name} class="estimate-row">
            <span>{name}</span>
            <div class="track" role="img" aria-label={`${name}: ${text}`}>
              {fill && <span class="fill" style={{ left: share(fill[0]), width: share(fill[1] - fill[0]), background: colour }} />}
              {parts && <Parts parts={parts} share={share} />}
              {mark !== undefined && mark > 0 && <span class="mark" style={{ left: `min(${share(mark)}, calc(100% - 2px))` }} />}
            </div>
            <span class="text">{text}</span>
          </li>
        ))}
      </ul>
      {rows.some(({ mark }) => mark) && (
        <p class="quiet">The line across a bar marks the reserved memory of an attempt, or the upper bound of the estimate.</p>
      )}
      {estimate.parts && estimate.parts.length > 0 && <PartsLegend parts={estimate.parts} />}
    </>
  );
}

function Parts({ parts, share }: { parts: { name: string; memory: number }[]; share: (value: number) => string }) {
  let from = 0;
  return (
    <>
      {parts.map((part, place) => {
        const left = from;
        from += part.memory;
        return (
          <span
            key={part.name}
            class="segment"
            title={`${part.name}: ${memory(part.memory)}`}
            style={{ left: share(left), width: share(part.memory), background: shade(place) }}
          />
        );
      })}
    </>
  );
}

function PartsLegend({ parts }: { parts: { name: string; memory: number }[] }) {
  return (
    <>
      <ul class="legend" aria-label="Parts of the expected memory">
        {parts.map(({ name, memory: size }, place) => (
          <li key={name}>
            <span class="swatch" style={{ "--colour": shade(place) }} />
            {name} <span class="value">{memory(size)}</span>
          </li>
        ))}
      </ul>
      <AsTable
        title="Expected memory"
        table={{ columns: ["Part", "Memory"], rows: () => parts.map(part => [part.name, memory(part.memory)]) }}
      />
    </>
  );
}
