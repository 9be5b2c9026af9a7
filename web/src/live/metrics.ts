// The metrics of GPUs, as the manager lists them.

import type { Metric, MetricDetail } from "../api/schema";
import { useObservable } from "../lib/observable";
import type { PerMetric } from "../lib/track";
import { managerStatus } from "./manager";

/** Those that tables and charts show. Some are shown only where one of these has a value. */
export function useMetrics(...measured: PerMetric<unknown>[]): MetricDetail[] {
  const all = useObservable(managerStatus)?.metrics ?? [];
  const isMeasured = (id: Metric) => measured.some(values => values[id] !== undefined && values[id] !== null);
  return all.filter(({ id, shown }) => shown === "always" || (shown === "where_measured" && isMeasured(id)));
}

/** The colour of a metric's curve, by its place among those that are shown. */
export const metricColour = (place: number): string => `var(--metric-${place})`;
