// The attempts of a job.

import type { AttemptDetail } from "../api/schema";
import { duration, energy, memory, percent, UNKNOWN } from "../lib/format";
import { Elapsed, EndingBadge, GpuLinks, When } from "./marks";
import { type ColumnOf, ROOMY, Table } from "./table";

/** Who caused the end, where it was not the job itself. */
const CAUSES: Record<string, string> = {
  other_processes: "caused by other jobs on the GPU",
  hardware: "hardware fault",
  stopped: "on request",
};

const ATTEMPTS: ColumnOf<AttemptDetail>[] = [
  { name: "Attempt", cell: ({ attempt }) => attempt.number },
  { name: "GPUs", cell: ({ placement }) => <GpuLinks devices={placement.devices.map(({ device }) => device)} /> },
  { name: "Started", cell: ({ launched }) => <When at={launched} /> },
  {
    name: "Run time",
    cell: ({ launched, ended }) => (ended ? duration((ended - launched) / 1000) : <Elapsed since={launched} />),
    number: true,
  },
  {
    name: "Reserved",
    cell: ({ placement }) => placement.devices.map(({ reserved }) => memory(reserved)).join(", ") || UNKNOWN,
    number: true,
  },
  {
    name: "Peak",
    cell: ({ peaks }) =>
      peaks
        .filter(peak => peak > 0)
        .map(memory)
        .join(", ") || UNKNOWN,
    number: true,
  },
  { name: "SMACT", cell: ({ utilisation }) => percent(utilisation.smact), number: true },
  { name: "Energy", cell: attempt => energy(attempt.energy), number: true },
  {
    name: "Result",
    room: ROOMY,
    cell: ({ ending, reason, blame }) =>
      ending ? (
        <span class="reason">
          <EndingBadge ending={ending} /> {reason}
          {blame && CAUSES[blame] && <span class="quiet"> ({CAUSES[blame]})</span>}
        </span>
      ) : (
        ""
      ),
  },
];

export function Attempts({ attempts }: { attempts: AttemptDetail[] }) {
  return (
    <section aria-labelledby="attempts-title">
      <h2 id="attempts-title">Attempts</h2>
      <Table
        caption="Attempts"
        columns={ATTEMPTS}
        rows={attempts}
        keyOf={({ attempt }) => attempt.number}
        empty="The job has not been started yet."
      />
    </section>
  );
}
