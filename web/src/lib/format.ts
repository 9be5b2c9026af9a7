// Numbers with their units. The one place where the page formats them.

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The text for an unknown value. */
export const UNKNOWN = "–";

const grouped = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

/** Three significant figures. */
export function figures(value: number): string {
  const size = Math.abs(value);
  if (size >= 1000 || Number.isInteger(value)) return grouped.format(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** Memory, from MiB. */
export function memory(mib: number | null | undefined): string {
  if (mib === null || mib === undefined) return UNKNOWN;
  if (mib === 0) return "0 GiB";
  if (mib < 1024) return `${Math.round(mib)} MiB`;
  return `${(mib / 1024).toFixed(1)} GiB`;
}

export function power(watts: number | null | undefined): string {
  return watts === null || watts === undefined ? UNKNOWN : `${Math.round(watts)} W`;
}

export function percent(share: number | null | undefined): string {
  return share === null || share === undefined ? UNKNOWN : `${Math.round(share * 100)} %`;
}

/** Energy, from joules. */
export function energy(joules: number | null | undefined): string {
  if (joules === null || joules === undefined) return UNKNOWN;
  const kilowattHours = joules / 3.6e6;
  if (kilowattHours < 0.1) return `${figures(kilowattHours * 1000)} Wh`;
  return `${figures(kilowattHours)} kWh`;
}

/** Mass of CO2, from grams. */
export function carbon(grams: number): string {
  return grams < 1000 ? `${figures(grams)} g` : `${figures(grams / 1000)} kg`;
}

/** One unit for all numbers of a column: the large one if the largest number is large. */
function inOneUnit(small: string, large: string, largest: number): (value: number) => string {
  const [unit, size] = largest < 10_000 ? [small, 1] : [large, 1000];
  return value => (value > 0 && value / size < 0.005 ? `< 0.01 ${unit}` : `${figures(value / size)} ${unit}`);
}

/** Energies of a column, from joules. */
export function energies(largest: number): (joules: number) => string {
  const format = inOneUnit("Wh", "kWh", largest / 3600);
  return joules => format(joules / 3600);
}

/** Masses of CO2 of a column, from grams. */
export const carbons = (largest: number): ((grams: number) => string) => inOneUnit("g", "kg", largest);

export function money(amount: number, currency: string): string {
  return `${amount.toFixed(amount < 1 ? 3 : 2)} ${currency}`;
}

/** A duration, from seconds, in its two largest units. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  const whole = Math.max(0, Math.round(seconds));
  const part = (large: number, largeUnit: string, small: number, smallUnit: string) => {
    const rest = Math.floor((whole % large) / small);
    return `${Math.floor(whole / large)} ${largeUnit}${rest > 0 ? ` ${rest} ${smallUnit}` : ""}`;
  };
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return part(MINUTE, "min", 1, "s");
  if (whole < DAY) return part(HOUR, "h", MINUTE, "min");
  return part(DAY, "d", HOUR, "h");
}

/** GPU-hours, from seconds on GPUs. */
export const gpuHours = (seconds: number): string => {
  const hours = seconds / HOUR;
  return hours > 0 && hours < 0.005 ? "< 0.01" : figures(hours);
};

/** The time since `at`, both in milliseconds. */
export function ago(at: number, now: number): string {
  const seconds = (now - at) / 1000;
  if (seconds < 5) return "just now";
  const [largest] = /^\d+ \S+/.exec(duration(seconds)) ?? [""];
  return `${largest} ago`;
}

/** A count with its noun. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${grouped.format(number)} ${number === 1 ? one : many}`;
}

/** A ratio to something measured: 1.25 is "+25 %". */
export function change(ratio: number): string {
  const part = Math.round((ratio - 1) * 100);
  return part === 0 ? "±0 %" : `${part > 0 ? "+" : "−"}${Math.abs(part)} %`;
}

/** A job's place in an array, in either of the manager's ways. */
export type Place = { array: number; index: number } | null | undefined;

/** A job's number, as on the command line: 8_2 is index 2 of array 8. */
export function jobNumber(id: number, place: Place): string {
  return place ? `${place.array}_${place.index}` : `${id}`;
}

/** A device's short name: without the server, if it is the manager's own. */
export function deviceName(device: string): string {
  return device.replace(/^s0\//, "");
}
