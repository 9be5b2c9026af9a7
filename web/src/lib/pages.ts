// Lists that are read page by page, the highest number first.

interface Numbered {
  id: number;
}

/** The rows of several pages, each once, as the latest page has it. */
export function merged<Row extends Numbered>(...pages: (readonly Row[])[]): Row[] {
  const rows = new Map(pages.flat().map(row => [row.id, row]));
  return [...rows.values()].sort((a, b) => b.id - a.id);
}

/**
 * The known rows after the latest page, of so many rows, was loaded again. It replaces the rows that it covers; older rows stay.
 * If it does not reach the known rows, there may be unknown rows in between, and only the latest page counts.
 */
export function renewed<Row extends Numbered>(known: readonly Row[], latest: readonly Row[], size: number): readonly Row[] {
  const oldest = latest.at(-1)?.id;
  if (oldest === undefined || latest.length < size || !known.some(({ id }) => id >= oldest)) return latest;
  return merged(
    known.filter(({ id }) => id < oldest),
    latest,
  );
}
