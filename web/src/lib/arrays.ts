// Jobs of one array as one row of a list.

import type { Place } from "./format";

/** A job, or several jobs of an array, of which `row` is the first. */
export interface Listed<Row> {
  row: Row;
  /** The number of listed jobs that it stands for. */
  jobs: number;
}

/** The rows in their order; with `group`, several jobs of an array are one row, at the place of the first. */
export function listed<Row extends { array?: Place }>(rows: readonly Row[], group: boolean): Listed<Row>[] {
  const arrays = new Map<number, Listed<Row>>();
  const found: Listed<Row>[] = [];
  for (const row of rows) {
    const known = group && row.array ? arrays.get(row.array.array) : undefined;
    if (known) known.jobs += 1;
    else {
      const first = { row, jobs: 1 };
      found.push(first);
      if (row.array) arrays.set(row.array.array, first);
    }
  }
  return found;
}

/** The numbers of the arrays among some rows. */
export const arraysOf = (rows: readonly Listed<{ array?: Place }>[]): number[] =>
  rows.flatMap(({ row, jobs }) => (jobs > 1 && row.array ? [row.array.array] : []));
