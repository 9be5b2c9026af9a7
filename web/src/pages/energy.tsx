// Energy by user, day or job, with its cost if a price is configured.

import { get } from "../api/client";
import type { EnergyKind, EnergyReport, EnergySum } from "../api/schema";
import { Choices } from "../components/choices";
import { EnergyBars, keyOf, nameOf } from "../components/energy_bars";
import { Fact, JobLink, Loaded, UserLink } from "../components/marks";
import { type ColumnOf, ROOMY, Table } from "../components/table";
import { carbon, carbons, energies, energy, money, UNKNOWN } from "../lib/format";
import { useObservable } from "../lib/observable";
import { SPANS, spanOf, startOf } from "../lib/spans";
import { minutesAhead } from "../lib/time";
import { managerTime } from "../live/clock";
import { useLive } from "../live/use_live";
import { route, setQuery } from "../router";

const KINDS: Record<EnergyKind, string> = { user: "by user", day: "by day", job: "by job" };
const JOULES = 3.6e6;

export function Energy() {
  const { query } = useObservable(route);
  const by = (query.get("by") ?? "") in KINDS ? (query.get("by") as EnergyKind) : "user";
  const span = spanOf(query.get("span"));
  const since = async () => startOf(span, await managerTime());
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
        <Choices label="Sum" options={KINDS} chosen={by} choose={chosen => setQuery({ by: chosen })} />
        <Choices label="Period" options={SPANS} chosen={span} choose={chosen => setQuery({ span: chosen })} />
      </div>
      <p class="quiet">The energy of GPUs, divided among the jobs on them. Only attempts that ended in this period count.</p>
      <Loaded live={live}>{data => <Report {...data} />}</Loaded>
    </>
  );
}

function SumLink({ sum }: { sum: EnergySum }) {
  if ("job" in sum.of) return <JobLink id={sum.of.job} name={sum.name} array={sum.array} />;
  return "user" in sum.of ? <UserLink {...sum.of.user} /> : <span>{nameOf(sum)}</span>;
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
      cell: sum => <SumLink sum={sum} />,
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
  if (report.sums.length === 0) return <p class="quiet">No attempt with measured energy ended in this period.</p>;
  return (
    <>
      <section aria-label="Total">
        <dl class="facts">
          <Fact name="Total">{energy(all)}</Fact>
          <Fact name="Cost">{price === null || price === undefined ? "no price configured" : cost(all)}</Fact>
          <Fact name="CO₂">{grams === null || grams === undefined ? "no carbon intensity configured" : emitted(all)}</Fact>
        </dl>
      </section>
      <EnergyBars sums={ordered} />
      <section aria-labelledby="sums-title">
        <h2 id="sums-title">Sums</h2>
        <Table caption="Energy" columns={columns} rows={ordered} keyOf={keyOf} />
      </section>
    </>
  );
}
