// The queue: running, waiting and held jobs.

import { get } from "../api/client";
import type { Queue, QueueRow } from "../api/schema";
import { Filters } from "../components/filters";
import { JobsTable } from "../components/jobs_table";
import { Pending } from "../components/marks";
import { count, jobNumber } from "../lib/format";
import { useObservable } from "../lib/observable";
import { LAUNCHED, NO_MATCH } from "../lib/words";
import { colourQueue } from "../live/colours";
import { myself } from "../live/manager";
import { useLive } from "../live/use_live";
import { route } from "../router";

// An answer has at most 1,000 rows.
const MOST = 333;
const PHASES = ["running", "starting", "queued", "estimating", "recovering", "preempted", "held"];

/** Whether a row contains all words. */
export function matches(row: QueueRow, text: string): boolean {
  const searched =
    `${row.id} ${jobNumber(row.id, row.array)} ${row.name ?? ""} ${row.user} ${row.reason ?? ""} ${row.devices.join(" ")}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every(word => searched.includes(word));
}

/** Unfinished jobs, as the manager lists them: those that wait are in the order in which they are considered. */
export async function loadQueue(query: { each: number; user?: number | undefined }, signal: AbortSignal): Promise<Queue> {
  const queue = await get("/v1/queue", { query, signal });
  colourQueue(queue.jobs);
  return queue;
}

export interface QueueParts {
  running: QueueRow[];
  waiting: QueueRow[];
  held: QueueRow[];
}

/** The jobs by what they do. */
export function partsOf(rows: readonly QueueRow[]): QueueParts {
  const isRunning = ({ state }: QueueRow) => LAUNCHED.includes(state);
  return {
    running: rows.filter(isRunning),
    waiting: rows.filter(row => !isRunning(row) && row.state !== "held"),
    held: rows.filter(({ state }) => state === "held"),
  };
}

export function QueuePage() {
  const { query } = useObservable(route);
  const me = useObservable(myself);
  const live = useLive(signal => loadQueue({ each: MOST }, signal), ["jobs"]);
  const [text, phase, mine] = [query.get("text") ?? "", query.get("state") ?? "", query.get("mine") === "yes"];
  const rows = (live.data?.jobs ?? []).filter(
    row => matches(row, text) && (!phase || row.state === phase) && (!mine || row.uid === me?.uid),
  );
  const counts = live.data?.counts;
  const all = counts ? counts.running + counts.waiting + counts.held : 0;
  return (
    <>
      <h1>Queue</h1>
      <Filters hint="name, user, number, GPU, reason" phases={PHASES}>
        <p class="quiet" role="status">
          {live.data && `${rows.length} of ${count(all, "job")}`}
        </p>
      </Filters>
      {!live.data && <Pending problem={live.problem} />}
      {live.data && rows.length === 0 && <p class="quiet">{all > 0 ? NO_MATCH : "No job is running or waiting."}</p>}
      <Parts parts={partsOf(rows)} />
    </>
  );
}

/** The parts that have jobs. */
export function Parts({ parts: { running, waiting, held } }: { parts: QueueParts }) {
  return (
    <>
      {running.length > 0 && (
        <section aria-labelledby="running-title">
          <h2 id="running-title">Running</h2>
          <JobsTable caption="Running jobs" kind="running" rows={running} empty="" />
        </section>
      )}
      {waiting.length > 0 && (
        <section aria-labelledby="waiting-title">
          <header class="section-head">
            <h2 id="waiting-title">Waiting</h2>
            <p class="quiet">in the order in which CARMA considers them</p>
          </header>
          <JobsTable caption="Waiting jobs" kind="waiting" rows={waiting} empty="" />
        </section>
      )}
      {held.length > 0 && (
        <section aria-labelledby="held-title">
          <h2 id="held-title">Held</h2>
          <JobsTable caption="Held jobs" kind="held" rows={held} empty="" />
        </section>
      )}
    </>
  );
}
