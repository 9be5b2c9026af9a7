// What was seen of a GPU over time, in columns, from the looks of the last minutes or from means by the minute.

import type { AttemptId, GpuStay, GpuTimeline, RecentLooks } from "../api/types";

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

/** The mean memory of a stay over a time, counted as nothing while it was not there; unset where it was not there at all. */
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

export function fromTimeline({ minutes, stays }: GpuTimeline): Track {
  const starts = minutes.map(({ minute }) => minute * MINUTE);
  const known = (value: number | undefined | null) => value ?? null;
  return {
    at: starts.map(start => start + MINUTE / 2),
    memory: minutes.map(minute => minute.memory_used),
    smact: minutes.map(({ utilisation }) => known(utilisation.smact)),
    smocc: minutes.map(({ utilisation }) => known(utilisation.smocc)),
    drama: minutes.map(({ utilisation }) => known(utilisation.drama)),
    power: minutes.map(minute => known(minute.power)),
    tenants: stays.map(stay => ({ attempt: stay.attempt, memory: starts.map(start => meanOver(stay, start, start + MINUTE)) })),
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
