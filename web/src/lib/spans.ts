// Periods that end now, as pages offer them.

const DAY = 86_400_000;

export const SPANS = { "1": "24 h", "7": "7 d", "30": "30 d", all: "all" } as const;
export type Span = keyof typeof SPANS;

/** The period of an address; seven days if it names none. */
export const spanOf = (text: string | null): Span => (text !== null && text in SPANS ? (text as Span) : "7");

/** When a period begins; unset: with the first job. */
export const startOf = (span: Span, now: number): number | undefined => (span === "all" ? undefined : Math.floor(now - Number(span) * DAY));
