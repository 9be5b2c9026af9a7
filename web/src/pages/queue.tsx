// The queue.

import { get } from "../api/client";
import type { QueueRow } from "../api/schema";
import { Filters } from "../components/filters";
import { JobsTable } from "../components/jobs_table";
import { Pending } from "../components/marks";
import { count, jobNumber } from "../lib/format";
import { useObservable } from "../lib/observable";
import { myself } from "../live/manager";
import { useLive } from "../live/use_live";
import { route } from "../router";

// An answer has 1,000 rows at most.
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

export function QueuePage() {
  const { query } = useObservable(route);
  const me = useObservable(myself);
  const live = useLive(signal => get("/v1/queue", { query: { each: MOST }, signal }), ["jobs"]);
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
      {live.data ? (
        <JobsTable caption="Jobs that are not over" kind="all" rows={rows} empty={all > 0 ? "No job matches." : "No job runs or waits."} />
      ) : (
        <Pending problem={live.problem} />
      )}
    </>
  );
}
