// The GPUs, now and over time.

import { get } from "../api/client";
import type { GpuDetail, GpuStay } from "../api/schema";
import { overTime } from "../lib/job_colours";
import { fromSamples, fromTimeline, type Track } from "../lib/track";
import { managerTime } from "./clock";
import { colourGpus, giveColours } from "./colours";

/** Points of a chart. */
const POINTS = 400;
/** The manager keeps single samples for this long, in milliseconds; older ones are means of a minute. */
export const RECENT = 600_000;

export async function loadGpus(signal: AbortSignal): Promise<GpuDetail[]> {
  const gpus = await get("/v1/gpus", { signal });
  colourGpus(gpus);
  return gpus;
}

/** A GPU over time: its samples, and the attempts on it. */
export interface GpuHistory {
  track: Track;
  stays: GpuStay[];
  since: number;
  until: number;
}

/** A GPU in a period; `until` unset: until now. */
export async function loadGpuHistory(device: string, since: number, until: number | undefined, signal: AbortSignal): Promise<GpuHistory> {
  const now = await managerTime();
  const recent = until === undefined && now - since <= RECENT;
  const [line, samples] = await Promise.all([
    get("/v1/gpus/{gpu}/timeline", { path: { gpu: device }, query: { since: Math.floor(since), ...(until ? { until } : {}) }, signal }),
    recent ? get("/v1/recent", { query: { gpu: device, points: POINTS, since: Math.floor(since) }, signal }) : undefined,
  ]);
  giveColours(overTime(line.stays));
  const track = samples
    ? samples[0] && fromSamples(samples[0], POINTS)
    : fromTimeline(line, POINTS, since, until ?? Math.max(line.until, now));
  const empty: Track = { at: [], memory: [], utilisation: {}, power: [], tenants: [] };
  // A sample may be newer than `until`.
  const latest = until ?? Math.max(line.until, now, track?.at.at(-1) ?? 0);
  return { track: track ?? empty, stays: line.stays, since, until: latest };
}
