// Tables that fold into cards where there is little room, sorted by a click where that is wanted.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export interface ColumnOf<Row> {
  name: string;
  cell: (row: Row) => ComponentChildren;
  /** By what it is sorted; unset: it is not. */
  order?: (row: Row) => number | string;
  /** Numbers stand at the right. */
  number?: boolean;
}

/** Rows that are shown unless somebody wants all. */
const MOST = 200;

interface Sorting {
  column: string;
  down: boolean;
}

function sorted<Row>(rows: readonly Row[], columns: readonly ColumnOf<Row>[], sorting: Sorting | undefined): readonly Row[] {
  const order = columns.find(column => column.name === sorting?.column)?.order;
  if (!order || !sorting) return rows;
  const sign = sorting.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [order(a), order(b)];
    return left < right ? -sign : left > right ? sign : 0;
  });
}

export function Table<Row>(props: {
  caption: string;
  columns: readonly ColumnOf<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string | number;
  empty?: string;
}) {
  const { caption, columns, rows, keyOf, empty = "Nothing." } = props;
  const [sorting, setSorting] = useState<Sorting>();
  const [all, setAll] = useState(false);
  if (rows.length === 0) return <p class="quiet">{empty}</p>;
  const turn = (column: string) => setSorting(before => ({ column, down: before?.column === column ? !before.down : false }));
  const direction = (column: string) => (sorting?.column !== column ? "none" : sorting.down ? "descending" : "ascending");
  const shown = sorted(rows, columns, sorting).slice(0, all ? rows.length : MOST);
  return (
    <div class="table-box">
      <table class="folding">
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ name, order, number }) => (
              <th key={name} scope="col" class={number ? "number" : undefined} aria-sort={order ? direction(name) : undefined}>
                {order ? (
                  <button type="button" class="sort" onClick={() => turn(name)}>
                    {name}
                    <span aria-hidden="true">{{ none: "", ascending: " ▲", descending: " ▼" }[direction(name)]}</span>
                  </button>
                ) : (
                  name
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(row => (
            <tr key={keyOf(row)}>
              {columns.map(({ name, cell, number }) => (
                <td key={name} data-label={name} class={number ? "number" : undefined}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < rows.length && (
        <button type="button" class="plain" onClick={() => setAll(true)}>
          Show all {rows.length}
        </button>
      )}
    </div>
  );
}
