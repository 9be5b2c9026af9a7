// Jobs of all times, the latest first, with search.

import { useEffect, useState } from "preact/hooks";
import { get, type QueryOf } from "../api/client";
import { messageOf } from "../api/request";
import type { JobSummary, Phase } from "../api/schema";
import { Filters } from "../components/filters";
import { Badge, EndingBadge, JobLink, Loaded, When } from "../components/marks";
import { type ColumnOf, ROOMY, Table } from "../components/table";
import { phaseTone } from "../lib/colour";
import { duration, UNKNOWN } from "../lib/format";
import { useObservable } from "../lib/observable";
import { merged, renewed } from "../lib/pages";
import { startOfDay } from "../lib/time";
import { myself } from "../live/manager";
import { useLive } from "../live/use_live";
import { route, setQuery } from "../router";

const PAGE = 100;
/** Delay after the last key press, in milliseconds. */
const TYPING = 250;
const PHASES = ["done", "running", "starting", "queued", "estimating", "recovering", "preempted", "held"];

const COLUMNS: ColumnOf<JobSummary>[] = [
  { name: "Job", cell: job => <JobLink id={job.id} name={job.name} array={job.array} />, order: ({ id }) => id, room: ROOMY },
  { name: "User", cell: job => job.user_name, order: job => job.user_name },
  {
    name: "State",
    cell: ({ phase, ending }) => (ending ? <EndingBadge ending={ending} /> : <Badge tone={phaseTone(phase)}>{phase}</Badge>),
    order: ({ phase, ending }) => ending?.brief ?? phase,
    room: 120,
  },
  { name: "GPUs", cell: ({ gpus }) => gpus, order: ({ gpus }) => gpus, number: true },
  { name: "Attempts", cell: ({ attempts }) => attempts, order: ({ attempts }) => attempts, number: true, lesser: true },
  { name: "Submitted", cell: ({ submitted }) => <When at={submitted} />, order: ({ submitted }) => submitted, room: 120 },
  { name: "Ended", cell: ({ ended }) => (ended ? <When at={ended} /> : UNKNOWN), order: ({ ended }) => ended ?? 0, room: 120 },
  {
    name: "In all",
    cell: ({ submitted, ended }) => (ended ? duration((ended - submitted) / 1000) : UNKNOWN),
    order: ({ submitted, ended }) => (ended ? ended - submitted : 0),
    number: true,
    room: 120,
  },
];

export function History() {
  const { query } = useObservable(route);
  const me = useObservable(myself);
  const parameter = (name: string) => query.get(name) ?? "";
  const wanted = {
    text: parameter("text"),
    state: (parameter("state") || undefined) as Phase | undefined,
    array: Number(parameter("array")) || undefined,
    user: parameter("mine") && me ? me.uid : undefined,
    since: startOfDay(parameter("from")) ?? undefined,
    until: startOfDay(parameter("to"), 1) ?? undefined,
    limit: PAGE,
  };
  return (
    <>
      <h1>History{wanted.array && ` of array ${wanted.array}`}</h1>
      <Filters hint="name, user or number" phases={PHASES} typing={TYPING}>
        {(["from", "to"] as const).map(name => (
          <label key={name}>
            {{ from: "Submitted from", to: "to" }[name]}
            <input type="date" value={parameter(name)} onChange={event => setQuery({ [name]: event.currentTarget.value })} />
          </label>
        ))}
      </Filters>
      <Found wanted={wanted} />
    </>
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
function Found({ wanted }: { wanted: Wanted }) {
  const key = JSON.stringify(wanted);
  const first = useLive(signal => get("/v1/history", { query: wanted, signal }), ["jobs"], key, 2000);
  const [known, setKnown] = useState<Known>({ key, jobs: [], over: false });
  const earlier: Known = known.key === key ? known : { key, jobs: [], over: false };
  const latest = first.data ?? [];
  const rows = renewed(earlier.jobs, latest, PAGE);
  const over = latest.length < PAGE || (earlier.over && rows !== latest);
  useEffect(() => {
    if (first.data && !first.stale && earlier.jobs.length > 0) setKnown({ key, jobs: rows, over });
  }, [first.data]);
  const more = async () => {
    try {
      const page = await get("/v1/history", { query: { ...wanted, before: rows.at(-1)?.id } });
      // The latest page may have been renewed meanwhile.
      setKnown(now => ({ key, jobs: merged(rows, page, now.key === key ? now.jobs : []), over: page.length < PAGE }));
    } catch (error) {
      setKnown({ ...earlier, problem: messageOf(error) });
    }
  };
  return (
    <Loaded live={first}>
      {() => (
        <>
          <p class="unseen" role="status">
            {rows.length} jobs found
          </p>
          <Table caption="Jobs, the latest first" columns={COLUMNS} rows={rows} keyOf={({ id }) => id} empty="No job matches." />
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
