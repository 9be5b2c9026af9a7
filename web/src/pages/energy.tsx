// Energy by user, day or job, with its cost if a price is configured.

import { get } from "../api/client";
import type { EnergyKind, EnergyReport, EnergySum } from "../api/schema";
import { Choices } from "../components/choices";
import { Fact, JobLink, Loaded } from "../components/marks";
import { type ColumnOf, ROOMY, Table } from "../components/table";
import { carbon, carbons, energies, energy, jobNumber, money, UNKNOWN } from "../lib/format";
import { useObservable } from "../lib/observable";
import { dayNumber, minutesAhead } from "../lib/time";
import { managerTime } from "../live/clock";
import { useLive } from "../live/use_live";
import { route, setQuery } from "../router";

const KINDS: Record<EnergyKind, string> = { user: "by user", day: "by day", job: "by job" };
const DAY = 86_400_000;
const SPANS = { "1": "24 h", "7": "7 d", "30": "30 d", all: "all" };
const JOULES = 3.6e6;
const BARS = 31;

function nameOf({ of, name, array }: EnergySum): string {
  if ("day" in of) return dayNumber(of.day);
  return "user" in of ? of.user.name : `${jobNumber(of.job, array)} ${name ?? ""}`.trim();
}
const keyOf = ({ of }: EnergySum): number => ("day" in of ? of.day : "user" in of ? of.user.uid : of.job);

export function Energy() {
  const { query } = useObservable(route);
  const by = (query.get("by") ?? "") in KINDS ? (query.get("by") as EnergyKind) : "user";
  const span = (query.get("span") ?? "") in SPANS ? (query.get("span") as keyof typeof SPANS) : "7";
  const since = async () => (span === "all" ? undefined : Math.floor((await managerTime()) - Number(span) * DAY));
  const live = useLive(
    async signal => ({ by, report: await get("/v1/energy", { query: { by, since: await since(), ahead: minutesAhead() }, signal }) }),
    ["jobs"],
    `${by} ${span}`,
    5000,
  );
  return (
    <>
      <h1>Energy</h1>
      <div class="filters">
        <Choices label="Sums" options={KINDS} chosen={by} choose={chosen => setQuery({ by: chosen })} />
        <Choices label="Span" options={SPANS} chosen={span} choose={chosen => setQuery({ span: chosen })} />
      </div>
      <p class="quiet">Energy of GPUs, shared out to the jobs on them, of attempts that ended in this time.</p>
      <Loaded live={live}>{data => <Report {...data} />}</Loaded>
    </>
  );
}

function Report({ report, by }: { report: EnergyReport; by: EnergyKind }) {
  const { price, currency, carbon: grams } = report;
  const most = report.sums.reduce((largest, sum) => Math.max(largest, sum.energy), 0);
  const inColumn = { energy: energies(most), carbon: carbons((most / JOULES) * (grams ?? 0)) };
  const all = report.sums.reduce((sum, { energy: joules }) => sum + joules, 0);
  const cost = (joules: number) => (price === null || price === undefined ? UNKNOWN : money((joules / JOULES) * price, currency));
  const emitted = (joules: number) => (grams === null || grams === undefined ? UNKNOWN : carbon((joules / JOULES) * grams));
  const ordered = [...report.sums].sort((a, b) => (by === "day" ? keyOf(b) - keyOf(a) : b.energy - a.energy));
  const columns: ColumnOf<EnergySum>[] = [
    {
      name: { user: "User", day: "Day", job: "Job" }[by],
      cell: sum => ("job" in sum.of ? <JobLink id={sum.of.job} name={sum.name} array={sum.array} /> : nameOf(sum)),
      order: sum => (by === "user" ? nameOf(sum) : keyOf(sum)),
      room: by === "job" ? ROOMY : 120,
    },
    { name: "Attempts", cell: ({ attempts }) => attempts, order: ({ attempts }) => attempts, number: true },
    { name: "Energy", cell: sum => inColumn.energy(sum.energy), order: sum => sum.energy, number: true },
    ...(price === null || price === undefined ? [] : [{ name: "Cost", cell: (sum: EnergySum) => cost(sum.energy), number: true }]),
    ...(grams === null || grams === undefined
      ? []
      : [{ name: "CO₂", cell: (sum: EnergySum) => inColumn.carbon((sum.energy / JOULES) * grams), number: true }]),
  ];
  if (report.sums.length === 0) return <p class="quiet">No attempt with measured energy ended in this time.</p>;
  return (
    <>
      <section aria-label="In all">
        <dl class="facts">
          <Fact name="In all">{energy(all)}</Fact>
          <Fact name="Cost">{price === null || price === undefined ? "no price is configured" : cost(all)}</Fact>
          <Fact name="CO₂">{grams === null || grams === undefined ? "no carbon intensity is configured" : emitted(all)}</Fact>
        </dl>
      </section>
      <Bars sums={ordered.slice(0, BARS)} left={ordered.length - BARS} />
      <section aria-labelledby="sums-title">
        <h2 id="sums-title">Sums</h2>
        <Table caption="Energy" columns={columns} rows={ordered} keyOf={keyOf} />
      </section>
    </>
  );
}

function Bars({ sums, left }: { sums: EnergySum[]; left: number }) {
  const most = Math.max(...sums.map(({ energy: joules }) => joules));
  const format = energies(most);
  const words = sums.map(sum => `${nameOf(sum)} ${format(sum.energy)}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <h2>Energy</h2>
        {left > 0 && <span class="quiet">the first {BARS}</span>}
      </figcaption>
      <ul class="bars" aria-label={words}>
        {sums.map(sum => (
          <li key={keyOf(sum)}>
            <span class="name" title={nameOf(sum)}>
              {nameOf(sum)}
            </span>
            <span class="bar" style={{ width: `${(100 * sum.energy) / most}%` }} />
            <span class="value">{format(sum.energy)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
