// Memory of a GPU, one job upon the other, and what is promised of it.

import type { AttemptId, GpuStay } from "../api/types";
import type { Track } from "./track";

export interface Layer {
  /** Whose; unset: nobody's of ours. */
  attempt: AttemptId | undefined;
  /** Lower and upper edge at each time. */
  edges: [number, number][];
}

/** A layer for each job that had memory, and one for what is left of the memory in use. */
export function stacked(track: Track): Layer[] {
  const floor = track.at.map(() => 0);
  const layer = (attempt: AttemptId | undefined, heights: number[]): Layer => ({
    attempt,
    edges: heights.map((height, index) => {
      const from = floor[index] ?? 0;
      floor[index] = from + height;
      return [from, from + height];
    }),
  });
  const present = track.tenants.filter(({ memory }) => memory.some(value => (value ?? 0) > 0));
  const ours = present.map(({ attempt, memory }) =>
    layer(
      attempt,
      memory.map(value => value ?? 0),
    ),
  );
  const others = track.memory.map((value, index) => Math.max(0, (value ?? 0) - (floor[index] ?? 0)));
  return others.some(value => value > 0) ? [...ours, layer(undefined, others)] : ours;
}

/** Memory that is promised in all, from each of these times on. */
export function promisedSteps(stays: readonly GpuStay[], since: number, until: number): { at: number; promised: number }[] {
  const changes = stays.flatMap(({ launched, ended, promised }) => [
    { at: Math.max(launched, since), change: promised },
    ...(ended ? [{ at: ended, change: -promised }] : []),
  ]);
  const inside = changes.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
  const steps = [{ at: since, promised: 0 }];
  for (const { at, change } of inside) {
    const last = steps.at(-1);
    const promised = (last?.promised ?? 0) + change;
    if (last && last.at === at) last.promised = promised;
    else steps.push({ at, promised });
  }
  return [...steps, { at: until, promised: steps.at(-1)?.promised ?? 0 }];
}

/** Rows for bars, so that none in a row overlap: each goes into the first row that is free. */
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
