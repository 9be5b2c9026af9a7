// Tables, sorted by a click. Without room, less important columns are hidden, and then rows become cards.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useWidth } from "./use_width";

export interface ColumnOf<Row> {
  name: string;
  cell: (row: Row) => ComponentChildren;
  /** The sort key; unset: not sortable. */
  order?: (row: Row) => number | string;
  /** Numbers are right-aligned. */
  number?: boolean;
  /** The width it needs in pixels, if more than a number. */
  room?: number;
  /** Hidden first. */
  lesser?: boolean;
}

/** Rows that are shown at first. */
const MOST = 200;
/** Widths in pixels of a column of numbers, and of one of names or sentences. */
const NARROW = 85;
export const ROOMY = 230;

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

/** The columns that fit the width. Cards have room for all of them. */
function fitted<Row>(columns: readonly ColumnOf<Row>[], room: number): { shown: readonly ColumnOf<Row>[]; cards: boolean } {
  const fits = (some: readonly ColumnOf<Row>[]) => some.reduce((sum, column) => sum + (column.room ?? NARROW), 0) <= room;
  const main = columns.filter(({ lesser }) => !lesser);
  if (fits(columns)) return { shown: columns, cards: false };
  return fits(main) ? { shown: main, cards: false } : { shown: columns, cards: true };
}

interface Props<Row> {
  caption: string;
  columns: readonly ColumnOf<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string | number;
}

export function Table<Row>({ empty = "Nothing.", ...props }: Props<Row> & { empty?: string }) {
  const [box, room] = useWidth();
  if (props.rows.length === 0) return <p class="quiet">{empty}</p>;
  return (
    <div class="table-box" ref={box}>
      {room > 0 && <Fitted {...props} {...fitted(props.columns, room)} />}
    </div>
  );
}

function Fitted<Row>({ caption, rows, keyOf, shown: columns, cards }: Props<Row> & ReturnType<typeof fitted<Row>>) {
  const [sorting, setSorting] = useState<Sorting>();
  const [all, setAll] = useState(false);
  const turn = (column: string) => setSorting(before => ({ column, down: before?.column === column ? !before.down : false }));
  const direction = (column: string) => (sorting?.column !== column ? "none" : sorting.down ? "descending" : "ascending");
  const shown = sorted(rows, columns, sorting).slice(0, all ? rows.length : MOST);
  return (
    <>
      <table class={cards ? "cards" : undefined}>
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
    </>
  );
}
