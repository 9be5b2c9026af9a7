// Jobs of all times, the latest first, with search.

import { useEffect, useState } from "preact/hooks";
import { get, type QueryOf } from "../api/client";
import { messageOf } from "../api/request";
import type { ArraySummary, JobSummary, OutcomeFilter, Phase } from "../api/schema";
import { Filters, TickFilter } from "../components/filters";
import { Counts, JobCell } from "../components/job_cell";
import { Badge, EndingBadge, Loaded, UserLink, When } from "../components/marks";
import { type ColumnOf, ROOMY, Table } from "../components/table";
import { arraysOf, type Listed, listed } from "../lib/arrays";
import { phaseTone } from "../lib/colour";
import { count, duration, energy, memory, UNKNOWN } from "../lib/format";
import { useObservable } from "../lib/observable";
import { merged, renewed } from "../lib/pages";
import { startOfDay } from "../lib/time";
import { LAUNCHED, NO_MATCH } from "../lib/words";
import { useArrays } from "../live/arrays";
import { managerNow } from "../live/clock";
import { myself } from "../live/manager";
import { useLive } from "../live/use_live";
import { route, setQuery } from "../router";

const PAGE = 100;
/** Delay after the last key press, in milliseconds. */
const TYPING = 250;
const PHASES = ["done", "running", "starting", "queued", "estimating", "recovering", "preempted", "held"];

type Column = ColumnOf<Listed<JobSummary>>;

function runTime({ phase, since, ran }: JobSummary): number | undefined {
  const running = LAUNCHED.includes(phase) ? (managerNow() - since) / 1000 : undefined;
  return running === undefined ? (ran ?? undefined) : running + (ran ?? 0);
}
const totalTime = ({ submitted, ended }: JobSummary): number => ((ended ?? managerNow()) - submitted) / 1000;

/** A number of a job; an array has none. */
function figure(name: string, of: (job: JobSummary) => number | null | undefined, text: (value: number) => string, room = 105): Column {
  const cell = ({ row, jobs }: Listed<JobSummary>) => {
    const value = of(row);
    return jobs > 1 ? "" : value === null || value === undefined ? UNKNOWN : text(value);
  };
  return { name, cell, order: ({ row }) => of(row) ?? -1, number: true, room };
}

function StateCell({ phase, ending }: JobSummary) {
  return ending ? <EndingBadge ending={ending} /> : <Badge tone={phaseTone(phase)}>{phase}</Badge>;
}

const columns = (arrays: ReadonlyMap<number, ArraySummary>): Column[] => [
  { name: "Job", cell: jobs => <JobCell {...jobs} arrays={arrays} />, order: ({ row }) => row.id, room: ROOMY },
  { name: "User", cell: ({ row }) => <UserLink uid={row.user} name={row.user_name} />, order: ({ row }) => row.user_name },
  {
    name: "State",
    cell: ({ row, jobs }) => (jobs > 1 ? "" : <StateCell {...row} />),
    order: ({ row }) => row.ending?.brief ?? row.phase,
    room: 120,
  },
  { name: "GPUs", cell: ({ row }) => row.gpus, order: ({ row }) => row.gpus, number: true, room: 60 },
  { ...figure("Attempts", ({ attempts }) => attempts, String), lesser: true },
  { name: "Submitted", cell: ({ row }) => <When at={row.submitted} />, order: ({ row }) => row.submitted, room: 120 },
  {
    name: "Ended",
    cell: ({ row, jobs }) => (jobs > 1 ? "" : row.ended ? <When at={row.ended} /> : UNKNOWN),
    order: ({ row }) => row.ended ?? 0,
    room: 120,
    lesser: true,
  },
  figure("Run time", runTime, duration),
  figure("Total time", totalTime, duration),
  figure("Peak memory", ({ peak }) => peak, memory, 110),
  figure("Energy", job => job.energy, energy),
];

export function History() {
  const { query } = useObservable(route);
  const me = useObservable(myself);
  const parameter = (name: string) => query.get(name) ?? "";
  const array = Number(parameter("array")) || undefined;
  const wanted = {
    text: parameter("text"),
    state: (parameter("state") || undefined) as Phase | undefined,
    outcome: (parameter("outcome") || undefined) as OutcomeFilter | undefined,
    array,
    user: parameter("mine") && me ? me.uid : Number(parameter("user")) || undefined,
    since: startOfDay(parameter("from")) ?? undefined,
    until: startOfDay(parameter("to"), 1) ?? undefined,
    limit: PAGE,
  };
  return (
    <>
      {array ? <ArrayHead array={array} /> : <h1>History</h1>}
      <Filters hint="name, user or number" phases={PHASES} outcomes typing={TYPING}>
        {(["from", "to"] as const).map(name => (
          <label key={name}>
            {{ from: "Submitted from", to: "to" }[name]}
            <input type="date" value={parameter(name)} onChange={event => setQuery({ [name]: event.currentTarget.value })} />
          </label>
        ))}
        {!array && <TickFilter name="each">Ungroup arrays</TickFilter>}
      </Filters>
      <Found wanted={wanted} group={!array && !parameter("each")} />
    </>
  );
}

/** An array with the states of its jobs. */
function ArrayHead({ array }: { array: number }) {
  const known = useArrays([array]).get(array);
  return (
    <div class="job-head">
      <h1>
        Array {array}
        {known?.name && ` ${known.name}`}
      </h1>
      {known && <Counts counts={known.jobs} />}
      {known && (
        <span class="quiet">
          of <UserLink uid={known.user} name={known.user_name} />, submitted <When at={known.submitted} />
        </span>
      )}
    </div>
  );
}

type Wanted = QueryOf<"/v1/history">;

interface Known {
  /** The query of these jobs. */
  key: string;
  jobs: readonly JobSummary[];
  /** There are no older jobs. */
  over: boolean;
  problem?: string;
}

/** The latest page, which changes as jobs do, and older pages, which are loaded on request. */
export function Found({ wanted, group }: { wanted: Wanted; group: boolean }) {
  const key = JSON.stringify(wanted);
  const size = wanted.limit ?? PAGE;
  const first = useLive(signal => get("/v1/history", { query: wanted, signal }), ["jobs"], key, 2000);
  const [known, setKnown] = useState<Known>({ key, jobs: [], over: false });
  const earlier: Known = known.key === key ? known : { key, jobs: [], over: false };
  const latest = first.data ?? [];
  const rows = renewed(earlier.jobs, latest, size);
  const list = listed(rows, group);
  const arrays = useArrays(arraysOf(list));
  const over = latest.length < size || (earlier.over && rows !== latest);
  useEffect(() => {
    if (first.data && !first.stale && earlier.jobs.length > 0) setKnown({ key, jobs: rows, over });
  }, [first.data]);
  const more = async () => {
    try {
      const page = await get("/v1/history", { query: { ...wanted, before: rows.at(-1)?.id } });
      // The latest page may have been renewed meanwhile.
      setKnown(now => ({ key, jobs: merged(rows, page, now.key === key ? now.jobs : []), over: page.length < size }));
    } catch (error) {
      setKnown({ ...earlier, problem: messageOf(error) });
    }
  };
  return (
    <Loaded live={first}>
      {() => (
        <>
          <p class="unseen" role="status">
            {count(rows.length, "job")} found
          </p>
          <Table caption="Jobs, the latest first" columns={columns(arrays)} rows={list} keyOf={({ row }) => row.id} empty={NO_MATCH} />
          {!over && (
            <div class="buttons left">
              <button type="button" onClick={more}>
                Earlier jobs
              </button>
            </div>
          )}
          {earlier.problem && (
            <p class="notice bad" role="alert">
              {earlier.problem}
            </p>
          )}
        </>
      )}
    </Loaded>
  );
}
