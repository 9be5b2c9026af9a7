// Memory of a GPU stacked by job, and the reserved memory.

import type { AttemptId, GpuStay } from "../api/schema";
import type { Column, Track } from "./track";

export interface Layer {
  /** The job; unset: other processes. */
  attempt: AttemptId | undefined;
  /** The index of its first point. */
  start: number;
  /** Lower and upper edge from there on, for as long as it has any height. */
  edges: [number, number][];
}

const isThere = (height: number | null | undefined) => (height ?? 0) > 0;

/** A layer for each job with memory, and one for the rest of the used memory. */
export function stacked(track: Track): Layer[] {
  const floor = track.at.map(() => 0);
  const layer = (attempt: AttemptId | undefined, heights: Column): Layer => {
    // With a point at either side, for its slopes. Of a week's many jobs, each is there for a few points only.
    const start = Math.max(0, heights.findIndex(isThere) - 1);
    const drawn = heights.slice(start, heights.findLastIndex(isThere) + 2);
    const edges = drawn.map((height, place): [number, number] => {
      const from = floor[start + place] ?? 0;
      floor[start + place] = from + (height ?? 0);
      return [from, from + (height ?? 0)];
    });
    return { attempt, start, edges };
  };
  const ours = track.tenants.filter(({ memory }) => memory.some(isThere)).map(({ attempt, memory }) => layer(attempt, memory));
  const others = track.memory.map((value, index) => Math.max(0, (value ?? 0) - (floor[index] ?? 0)));
  return others.some(isThere) ? [...ours, layer(undefined, others)] : ours;
}

/** The height of a layer at an index. */
export function heightAt({ start, edges }: Layer, index: number): number {
  const [from, to] = edges[index - start] ?? [0, 0];
  return to - from;
}

/** Total reserved memory, from each of these times on. */
export function reservedSteps(stays: readonly GpuStay[], since: number, until: number): { at: number; reserved: number }[] {
  const changes = stays.flatMap(({ launched, ended, reserved }) => [
    { at: Math.max(launched, since), change: reserved },
    ...(ended ? [{ at: ended, change: -reserved }] : []),
  ]);
  const inside = changes.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
  const steps = [{ at: since, reserved: 0 }];
  for (const { at, change } of inside) {
    const last = steps.at(-1);
    const reserved = (last?.reserved ?? 0) + change;
    if (last && last.at === at) last.reserved = reserved;
    else steps.push({ at, reserved });
  }
  return [...steps, { at: until, reserved: steps.at(-1)?.reserved ?? 0 }];
}

/** Rows for bars, so that none in a row overlap: each bar goes into the first free row. */
export function packed<T extends { launched: number; ended?: number | null }>(stays: readonly T[]): { stay: T; row: number }[] {
  const free: number[] = [];
  return [...stays]
    .sort((a, b) => a.launched - b.launched)
    .map(stay => {
      const found = free.findIndex(end => end <= stay.launched);
      const row = found < 0 ? free.length : found;
      free[row] = stay.ended ?? Number.POSITIVE_INFINITY;
      return { stay, row };
    });
}
