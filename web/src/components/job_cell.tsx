// The first column of lists of jobs: a job, or an array with the states of its jobs.

import type { ArraySummary, JobCounts } from "../api/schema";
import type { Listed } from "../lib/arrays";
import { count, type Place } from "../lib/format";
import { STATES } from "../lib/words";
import { to } from "../router";
import { Badge, JobLink } from "./marks";

interface Row {
  id: number;
  name?: string | null | undefined;
  array?: Place;
}

export function JobCell({ row, jobs, arrays }: Listed<Row> & { arrays: ReadonlyMap<number, ArraySummary> }) {
  if (jobs === 1 || !row.array) return <JobLink id={row.id} name={row.name} array={row.array} />;
  const { array } = row.array;
  const counts = arrays.get(array)?.jobs;
  return (
    <span class="array-cell">
      <a class="job-link" href={toArray(array)}>
        <span class="job-number">Array {array}</span>
        {row.name && (
          <span class="job-name" title={row.name}>
            {row.name}
          </span>
        )}
      </a>
      {counts ? <Counts counts={counts} /> : <span class="quiet">{count(jobs, "job")}</span>}
    </span>
  );
}

export const toArray = (array: number): string => to("history", undefined, { array: String(array) });

/** Jobs by state, those without jobs left out. */
export function Counts({ counts }: { counts: JobCounts }) {
  return (
    <span class="counts">
      {(Object.keys(STATES) as (keyof JobCounts)[])
        .filter(state => counts[state] > 0)
        .map(state => (
          <Badge key={state} tone={STATES[state].tone}>
            {counts[state]} {STATES[state].word}
          </Badge>
        ))}
    </span>
  );
}
