// Energy as bars, one for each user, day or job.

import type { EnergySum } from "../api/schema";
import { energies, jobNumber } from "../lib/format";
import { dayNumber } from "../lib/time";

const BARS = 31;

/** The user, day or job of a sum. */
export function nameOf({ of, name, array }: EnergySum): string {
  if ("day" in of) return dayNumber(of.day);
  return "user" in of ? of.user.name : `${jobNumber(of.job, array)} ${name ?? ""}`.trim();
}

export const keyOf = ({ of }: EnergySum): number => ("day" in of ? of.day : "user" in of ? of.user.uid : of.job);

export function EnergyBars({ sums }: { sums: readonly EnergySum[] }) {
  const shown = sums.slice(0, BARS);
  const most = Math.max(...shown.map(({ energy: joules }) => joules));
  const format = energies(most);
  const words = shown.map(sum => `${nameOf(sum)} ${format(sum.energy)}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <h2>Energy</h2>
        {sums.length > BARS && <span class="quiet">the first {BARS}</span>}
      </figcaption>
      <ul class="bars" aria-label={words}>
        {shown.map(sum => (
          <li key={keyOf(sum)}>
            <span class="name" title={nameOf(sum)}>
              {nameOf(sum)}
            </span>
            <span class="bar" style={{ width: `${most > 0 ? (100 * sum.energy) / most : 0}%` }} />
            <span class="value">{format(sum.energy)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
