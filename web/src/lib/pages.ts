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
 * What is known when the latest page, of so many rows, has come again: as far as it reaches it alone tells, and what new rows
 * pushed off it stays. Where it does not reach what was known, others may lie in between: then it is all that is known.
 */
export function renewed<Row extends Numbered>(known: readonly Row[], latest: readonly Row[], size: number): readonly Row[] {
  const oldest = latest.at(-1)?.id;
  if (oldest === undefined || latest.length < size || !known.some(({ id }) => id >= oldest)) return latest;
  return merged(
    known.filter(({ id }) => id < oldest),
    latest,
  );
}
