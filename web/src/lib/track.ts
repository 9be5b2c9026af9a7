// What was seen of a GPU over time, in columns, from the looks of the last minutes or from means by the minute.

import type { AttemptId, GpuStay, GpuTimeline, MemoryStep, RecentLooks } from "../api/types";

export type Column = (number | null)[];

export interface Track {
  at: number[];
  memory: Column;
  smact: Column;
  smocc: Column;
  drama: Column;
  power: Column;
  tenants: { attempt: AttemptId; memory: Column }[];
}

const MINUTE = 60_000;

export function fromLooks(looks: RecentLooks): Track {
  const { at, memory, smact, smocc, drama, power, tenants } = looks;
  return { at, memory, smact, smocc, drama, power, tenants };
}

/** The step that holds at a time. */
export function stepAt(steps: readonly MemoryStep[], at: number): number | null {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle]?.at ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return steps[low - 1]?.memory ?? null;
}

export function fromTimeline({ minutes, stays }: GpuTimeline): Track {
  const at = minutes.map(({ minute }) => minute * MINUTE + MINUTE / 2);
  const known = (value: number | undefined | null) => value ?? null;
  const during = (stay: GpuStay, time: number) =>
    time >= stay.launched && time <= (stay.ended ?? Number.POSITIVE_INFINITY) ? stepAt(stay.memory, time) : null;
  return {
    at,
    memory: minutes.map(minute => minute.memory_used),
    smact: minutes.map(({ utilisation }) => known(utilisation.smact)),
    smocc: minutes.map(({ utilisation }) => known(utilisation.smocc)),
    drama: minutes.map(({ utilisation }) => known(utilisation.drama)),
    power: minutes.map(minute => known(minute.power)),
    tenants: stays.map(stay => ({ attempt: stay.attempt, memory: at.map(time => during(stay, time)) })),
  };
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const most = (values: number[]) => values.reduce((sum, value) => Math.max(sum, value), 0);

/** At most so many points: neighbours are joined, how busy it was by the mean, memory by the most. */
export function thinned(track: Track, points: number): Track {
  const size = Math.ceil(track.at.length / points);
  if (size <= 1) return track;
  const joined = (column: Column, join: (values: number[]) => number): Column => {
    const result: Column = [];
    for (let start = 0; start < column.length; start += size) {
      const values = column.slice(start, start + size).filter(value => value !== null);
      result.push(values.length > 0 ? join(values) : null);
    }
    return result;
  };
  return {
    at: track.at.filter((_, index) => index % size === 0),
    memory: joined(track.memory, most),
    smact: joined(track.smact, mean),
    smocc: joined(track.smocc, mean),
    drama: joined(track.drama, mean),
    power: joined(track.power, mean),
    tenants: track.tenants.map(({ attempt, memory }) => ({ attempt, memory: joined(memory, most) })),
  };
}

/** Runs of points without a gap: a manager that was away has seen nothing. */
export function runs(at: readonly number[]): [start: number, end: number][] {
  if (at.length === 0) return [];
  const steps = at.slice(1).map((time, index) => time - (at[index] ?? 0));
  const usual = [...steps].sort((a, b) => a - b)[steps.length >> 1] ?? 0;
  const found: [number, number][] = [];
  let start = 0;
  steps.forEach((step, index) => {
    if (step > 4 * usual) {
      found.push([start, index + 1]);
      start = index + 1;
    }
  });
  found.push([start, at.length]);
  return found;
}
