// The states of the jobs of arrays.

import { get } from "../api/client";
import type { ArraySummary } from "../api/schema";
import { useLive } from "./use_live";

/** The manager counts no more arrays at once. */
const MOST = 100;

/** These arrays, by number. */
export function useArrays(arrays: readonly number[]): ReadonlyMap<number, ArraySummary> {
  const ids = [...new Set(arrays)]
    .sort((a, b) => a - b)
    .slice(0, MOST)
    .join(",");
  const { data } = useLive(async signal => (ids ? get("/v1/arrays", { query: { ids }, signal }) : []), ["jobs"], ids, 2000);
  return new Map(data?.map(summary => [summary.array, summary]));
}
