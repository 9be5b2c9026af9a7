// Points in time, in the browser's time zone.

const DAY = 86_400_000;

const clockTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const exactTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayAndTime = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const dayOnly = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** Only the time, if it is within a day of now. */
export function moment(at: number, now: number): string {
  return Math.abs(now - at) < DAY / 2 ? exactTime.format(at) : dayAndTime.format(at);
}

/** Date and time, for a title. */
export const exactly = (at: number): string => full.format(at);

/** A label of a time axis; with seconds where its marks are less than a minute apart. */
export function tick(at: Date, seconds = false): string {
  if (seconds) return exactTime.format(at);
  return at.getHours() === 0 && at.getMinutes() === 0 && at.getSeconds() === 0 ? dayOnly.format(at) : clockTime.format(at);
}

/** A day, counted from 1970. */
export const dayNumber = (day: number): string => dayOfYear.format(day * DAY);

/** Minutes that the browser's time zone is ahead of UTC. */
export const minutesAhead = (): number => -new Date().getTimezoneOffset();

/** The start of a day written as 2026-03-01, `later` days after it. */
export function startOfDay(text: string, later = 0): number | null {
  const [year, month, day] = text.split("-").map(Number);
  if (!year || !month || !day) return null;
  return new Date(year, month - 1, day + later).getTime();
}
