// Samples of a GPU over time, in columns: those of the last minutes, or means by the minute.

import type { AttemptId, AttemptUtilisation, GpuStay, GpuTimeline, Metric, RecentSamples } from "../api/schema";

/** Values by metric; the manager's status lists the metrics. */
export type PerMetric<T> = Partial<Record<Metric, T>>;

export type Column = (number | null)[];

interface Columns {
  at: number[];
  memory: Column;
  utilisation: PerMetric<Column>;
  power: Column;
}

export interface Track extends Columns {
  tenants: { attempt: AttemptId; memory: Column }[];
  /** Its values are means of minutes. */
  byMinute?: boolean;
}

const MINUTE = 60_000;

/** A value for each of these metrics. */
function byMetric<T>(ids: Iterable<string>, value: (id: Metric) => T): PerMetric<T> {
  // The manager's answers have no other keys.
  return Object.fromEntries([...ids].map(id => [id, value(id as Metric)]));
}

/** The indices of the point with the most memory among each so many neighbours. */
function fullest(memory: Column, size: number): number[] {
  const found: number[] = [];
  memory.forEach((value, index) => {
    const group = Math.floor(index / size);
    const best = found[group];
    if (best === undefined || (value ?? 0) > (memory[best] ?? 0)) found[group] = index;
  });
  return found;
}

function means(column: Column, size: number): Column {
  return Array.from({ length: Math.ceil(column.length / size) }, (_, group) => {
    const known = column.slice(group * size, (group + 1) * size).filter(value => value !== null);
    return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  });
}

/**
 * At most so many points. Neighbours are joined: utilisation by the mean, memory by the maximum.
 * Returns the indices of the maxima too, so that the parts of the memory are taken from the same points.
 */
function joined(columns: Columns, points: number): { columns: Columns; taken: number[] } {
  const size = Math.max(1, Math.ceil(columns.at.length / points));
  const taken = fullest(columns.memory, size);
  return {
    columns: {
      at: columns.at.filter((_, index) => index % size === 0),
      memory: taken.map(index => columns.memory[index] ?? null),
      utilisation: byMetric(Object.keys(columns.utilisation), id => means(columns.utilisation[id] ?? [], size)),
      power: means(columns.power, size),
    },
    taken,
  };
}

/** From the samples of the last minutes. */
export function fromSamples({ at, memory, utilisation, power, tenants }: RecentSamples, points: number): Track {
  const { columns, taken } = joined({ at, memory, utilisation, power }, points);
  return { ...columns, tenants: tenants.map(({ attempt, memory: has }) => ({ attempt, memory: taken.map(index => has[index] ?? null) })) };
}

/** The mean memory of a stay in a period, zero while it was not on the GPU; unset without any overlap. */
export function meanOver(
  { launched, ended, memory }: Pick<GpuStay, "launched" | "ended" | "memory">,
  from: number,
  to: number,
): number | null {
  const [start, end] = [Math.max(from, launched), Math.min(to, ended ?? to)];
  if (start >= end) return null;
  const sum = memory.reduce((total, step, place) => {
    const until = Math.min(end, memory[place + 1]?.at ?? end);
    return total + step.memory * Math.max(0, until - Math.max(start, step.at));
  }, 0);
  return sum / (to - from);
}

/** From means by the minute: each at the middle of what the period has of its minute. */
export function fromTimeline({ minutes, stays }: GpuTimeline, points: number, since: number, until: number): Track {
  const starts = minutes.map(({ minute }) => minute * MINUTE);
  const known = (value: number | undefined | null) => value ?? null;
  const ids = new Set(minutes.flatMap(({ utilisation }) => Object.keys(utilisation)));
  const { columns, taken } = joined(
    {
      at: starts.map(start => (Math.max(start, since) + Math.min(start + MINUTE, until)) / 2),
      memory: minutes.map(minute => minute.memory_used),
      utilisation: byMetric(ids, id => minutes.map(({ utilisation }) => known(utilisation[id]))),
      power: minutes.map(minute => known(minute.power)),
    },
    points,
  );
  const chosen = taken.map(index => starts[index] ?? 0);
  const tenants = stays.map(stay => ({ attempt: stay.attempt, memory: chosen.map(start => meanOver(stay, start, start + MINUTE)) }));
  return { ...columns, tenants, byMinute: true };
}

/** From means of equal spans: each at the middle of its span. The last may have begun only. */
export function fromSpans({ since, span, utilisation }: AttemptUtilisation, until: number): Track {
  const length = span * 1000;
  const spans = Math.max(0, ...Object.values(utilisation).map(column => column?.length ?? 0));
  const at = Array.from({ length: spans }, (_, place) => {
    const begins = since + place * length;
    return (begins + Math.max(begins, Math.min(begins + length, until))) / 2;
  });
  return { at, memory: [], utilisation, power: [], tenants: [] };
}

/** Runs of points without a gap: there are no samples while the manager is away. */
export function runs(at: readonly number[]): [start: number, end: number][] {
  if (at.length === 0) return [];
  const steps = at.slice(1).map((time, index) => time - (at[index] ?? 0));
  const median = [...steps].sort((a, b) => a - b)[steps.length >> 1] ?? 0;
  const found: [number, number][] = [];
  let start = 0;
  steps.forEach((step, index) => {
    if (step > 4 * median) {
      found.push([start, index + 1]);
      start = index + 1;
    }
  });
  found.push([start, at.length]);
  return found;
}
