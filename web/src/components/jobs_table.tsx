// The queue as a table.

import type { QueueRow } from "../api/schema";
import { phaseTone } from "../lib/colour";
import { duration, memory, percent } from "../lib/format";
import { Ago, Badge, GpuLinks, JobLink } from "./marks";
import { type ColumnOf, ROOMY, Table } from "./table";

const job: ColumnOf<QueueRow> = {
  name: "Job",
  cell: row => <JobLink id={row.id} name={row.name} array={row.array} />,
  order: row => row.id,
  room: ROOMY,
};
const user: ColumnOf<QueueRow> = { name: "User", cell: row => row.user, order: row => row.user };
const state: ColumnOf<QueueRow> = {
  name: "State",
  cell: row => <Badge tone={phaseTone(row.state)}>{row.state}</Badge>,
  order: row => row.state,
};
const since: ColumnOf<QueueRow> = { name: "For", cell: row => duration(row.for_seconds), order: row => row.for_seconds, number: true };
const held: ColumnOf<QueueRow> = { name: "Memory", cell: row => memory(row.memory), order: row => row.memory ?? 0, number: true };
const where: ColumnOf<QueueRow> = { name: "GPUs", cell: row => <GpuLinks devices={row.devices} />, order: row => row.devices.join() };
const wanted: ColumnOf<QueueRow> = { name: "Wants", cell: row => `${row.gpus} GPU${row.gpus === 1 ? "" : "s"}`, order: row => row.gpus };
const attempts: ColumnOf<QueueRow> = {
  name: "Attempts",
  cell: row => row.attempts,
  order: row => row.attempts,
  number: true,
  lesser: true,
};
const priority: ColumnOf<QueueRow> = {
  name: "Priority",
  cell: row => row.priority,
  order: row => row.priority,
  number: true,
  lesser: true,
};
const submitted: ColumnOf<QueueRow> = {
  name: "Submitted",
  cell: row => <Ago at={row.submitted} />,
  order: row => row.submitted,
  lesser: true,
};
const reason: ColumnOf<QueueRow> = {
  name: "Why it waits",
  cell: row => <span class="reason">{row.reason ?? ""}</span>,
  room: ROOMY,
};
// For a running job: that it does not use its GPUs.
const remark: ColumnOf<QueueRow> = { ...reason, name: "Remark" };
const progress: ColumnOf<QueueRow> = {
  name: "Progress",
  cell: row => (row.progress === null || row.progress === undefined ? "" : percent(row.progress)),
  order: row => row.progress ?? -1,
  number: true,
};

const RUNNING = [job, user, where, held, since, attempts, progress, remark];
const WAITING = [job, user, state, wanted, held, since, reason];
const ALL = [job, user, state, where, wanted, held, priority, attempts, since, submitted, reason];

export function JobsTable({
  caption,
  rows,
  kind,
  empty,
}: {
  caption: string;
  rows: QueueRow[];
  kind: "running" | "waiting" | "all";
  empty: string;
}) {
  const anyProgress = rows.some(row => row.progress !== null && row.progress !== undefined);
  const idle = rows.some(row => row.reason);
  const shown = (column: ColumnOf<QueueRow>) => (column === progress ? anyProgress : column === remark ? idle : true);
  const columns = { running: RUNNING, waiting: WAITING, all: ALL }[kind].filter(shown);
  return <Table caption={caption} columns={columns} rows={rows} keyOf={row => row.id} empty={empty} />;
}
