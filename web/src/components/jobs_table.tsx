// Unfinished jobs as tables: running, waiting, held.

import type { ArraySummary, QueueRow } from "../api/schema";
import { arraysOf, type Listed, listed } from "../lib/arrays";
import { phaseTone } from "../lib/colour";
import { count, duration, memory, percent, UNKNOWN } from "../lib/format";
import { useArrays } from "../live/arrays";
import { managerNow } from "../live/clock";
import { JobCell } from "./job_cell";
import { Badge, GpuLinks, UserLink } from "./marks";
import { type ColumnOf, ROOMY, Table } from "./table";

type Kind = "running" | "waiting" | "held";
type Column = ColumnOf<Listed<QueueRow>>;

const total = ({ submitted }: QueueRow) => (managerNow() - submitted) / 1000;
/** A number of each job, which an array has not. */
const ofOne = (text: (row: QueueRow) => string | number) => (listedJobs: Listed<QueueRow>) =>
  listedJobs.jobs > 1 ? "" : text(listedJobs.row);

const user: Column = { name: "User", cell: ({ row }) => <UserLink uid={row.uid} name={row.user} />, order: ({ row }) => row.user };
const state: Column = {
  name: "State",
  cell: ({ row }) => <Badge tone={phaseTone(row.state)}>{row.state}</Badge>,
  order: ({ row }) => row.state,
};
const gpus: Column = { name: "GPUs", cell: ({ row }) => <GpuLinks devices={row.devices} />, order: ({ row }) => row.devices.join() };
const wanted: Column = { name: "Needs", cell: ({ row }) => count(row.gpus, "GPU"), order: ({ row }) => row.gpus };
const need: Column = { name: "Memory", cell: ({ row }) => memory(row.memory), order: ({ row }) => row.memory ?? 0, number: true };
const reserved: Column = { ...need, name: "Reserved" };
const used: Column = {
  name: "Used",
  cell: ({ row }) => memory(row.used),
  order: ({ row }) => row.used ?? 0,
  number: true,
};
const runTime: Column = {
  name: "Run time",
  cell: ({ row }) => duration(row.for_seconds),
  order: ({ row }) => row.for_seconds,
  number: true,
};
const totalTime: Column = {
  name: "Total time",
  cell: ({ row }) => duration(total(row)),
  order: ({ row }) => total(row),
  number: true,
  lesser: true,
};
const waits: Column = {
  name: "Waiting",
  cell: ofOne(row => duration(row.for_seconds)),
  order: ({ row }) => row.for_seconds,
  number: true,
};
const attempts: Column = {
  name: "Attempts",
  cell: ofOne(row => row.attempts),
  order: ({ row }) => row.attempts,
  number: true,
  lesser: true,
};
const priority: Column = {
  name: "Priority",
  cell: ({ row }) => row.priority,
  order: ({ row }) => row.priority,
  number: true,
  lesser: true,
};
const share: Column = {
  name: "Progress",
  cell: ({ row }) => percent(row.progress),
  order: ({ row }) => row.progress ?? -1,
  number: true,
};
const left: Column = {
  name: "Time left",
  cell: ({ row }) => leftText(row.ends?.likely),
  order: ({ row }) => row.ends?.likely ?? Number.POSITIVE_INFINITY,
  number: true,
};
const reason: Column = { name: "Why it waits", cell: ({ row }) => <span class="reason">{row.reason ?? ""}</span>, room: ROOMY };
// For a running job: that it does not use its GPUs.
const remark: Column = { ...reason, name: "Note" };

const COLUMNS: Record<Kind, Column[]> = {
  running: [user, gpus, reserved, used, runTime, share, left, totalTime, attempts, remark],
  waiting: [user, state, wanted, need, waits, priority, attempts, reason],
  held: [user, wanted, need, priority, reason],
};

/** Time left, which is a prediction. */
export const leftText = (seconds: number | undefined): string => (seconds === undefined ? UNKNOWN : `≈ ${duration(seconds)}`);

export function JobsTable(props: { caption: string; rows: QueueRow[]; kind: Kind; empty: string; most?: number }) {
  const { caption, rows, kind, empty, most } = props;
  const list = listed(rows, kind !== "running").slice(0, most);
  const arrays = useArrays(arraysOf(list));
  const idle = rows.some(row => row.reason);
  const anyProgress = rows.some(row => row.progress !== null && row.progress !== undefined);
  const shown = (column: Column) => (column === remark ? idle : column === share || column === left ? anyProgress : true);
  const columns = [jobColumn(arrays), ...COLUMNS[kind].filter(shown)];
  return <Table caption={caption} columns={columns} rows={list} keyOf={({ row }) => row.id} empty={empty} />;
}

const jobColumn = (arrays: ReadonlyMap<number, ArraySummary>): Column => ({
  name: "Job",
  cell: jobs => <JobCell {...jobs} arrays={arrays} />,
  order: ({ row }) => row.id,
  room: ROOMY,
});
