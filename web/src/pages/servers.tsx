// The servers of agents, and the pools that request pilots for them.

import { useState } from "preact/hooks";
import { get, post } from "../api/client";
import type { Pilot, PoolDetail, ServerDetail } from "../api/schema";
import { ConfirmDialog } from "../components/dialog";
import { Ago, Badge, Fact, Loaded } from "../components/marks";
import { type ColumnOf, ROOMY, Table } from "../components/table";
import { pilotCounts, pilotState, poolFacts, poolState, type State, serverName, serverState } from "../lib/cluster";
import { count, duration, UNKNOWN } from "../lib/format";
import { useObservable } from "../lib/observable";
import { exactly } from "../lib/time";
import { useNow } from "../live/clock";
import { myself } from "../live/manager";
import { useLive } from "../live/use_live";

/** Milliseconds between two requests. */
const EVERY = 2000;

export function ServersPage() {
  const live = useLive(
    async signal => {
      const [servers, pools] = await Promise.all([get("/v1/servers", { signal }), get("/v1/pools", { signal })]);
      return { servers, pools };
    },
    ["machine", "gpus", "jobs"],
    "",
    EVERY,
  );
  return (
    <>
      <h1>Servers</h1>
      <Loaded live={live}>
        {({ servers, pools }) => (
          <>
            <Servers servers={servers} />
            <Pools pools={pools} reload={live.reload} />
          </>
        )}
      </Loaded>
    </>
  );
}

/** The time until a server ends. */
function EndsIn({ at }: { at: number | null | undefined }) {
  const now = useNow();
  if (at === null || at === undefined) return <>{UNKNOWN}</>;
  return (
    <time dateTime={new Date(at).toISOString()} title={exactly(at)}>
      {duration((at - now) / 1000)}
    </time>
  );
}

function StateCell({ state }: { state: State }) {
  return (
    <span class="reason">
      <Badge tone={state.tone}>{state.word}</Badge> {state.reason}
    </span>
  );
}

const SERVERS: ColumnOf<ServerDetail>[] = [
  { name: "Server", cell: ({ id }) => serverName(id), order: ({ id }) => id },
  { name: "Node", cell: ({ node }) => node, order: ({ node }) => node, room: 140 },
  { name: "GPUs", cell: ({ gpus }) => gpus, order: ({ gpus }) => gpus, number: true },
  { name: "Jobs", cell: ({ jobs }) => jobs, order: ({ jobs }) => jobs, number: true },
  {
    name: "Ends in",
    cell: ({ ends }) => <EndsIn at={ends} />,
    order: ({ ends }) => ends ?? Number.MAX_SAFE_INTEGER,
    number: true,
    room: 120,
  },
  { name: "Pool", cell: ({ pool }) => pool ?? UNKNOWN, order: ({ pool }) => pool ?? "", room: 120 },
  { name: "Batch job", cell: server => server.batch_job ?? UNKNOWN, room: 110 },
  { name: "Connected", cell: ({ joined }) => <Ago at={joined} />, order: ({ joined }) => joined, room: 120, lesser: true },
  { name: "State", cell: server => <StateCell state={serverState(server)} />, order: server => serverState(server).word, room: ROOMY },
];

function Servers({ servers }: { servers: ServerDetail[] }) {
  const gpus = servers.reduce((sum, server) => sum + server.gpus, 0);
  return (
    <section aria-labelledby="servers-title">
      <header class="section-head">
        <h2 id="servers-title">Connected servers</h2>
        <p class="quiet">
          {count(servers.length, "server")}, {count(gpus, "GPU")}
        </p>
      </header>
      <Table
        caption="Connected servers"
        columns={SERVERS}
        rows={servers}
        keyOf={({ id }) => id}
        empty="No agent has connected. Jobs run on the manager's own host."
      />
    </section>
  );
}

function Pools({ pools, reload }: { pools: PoolDetail[]; reload: () => void }) {
  return (
    <section aria-labelledby="pools-title">
      <header class="section-head">
        <h2 id="pools-title">Pools</h2>
        <p class="quiet">{count(pools.length, "pool")}</p>
      </header>
      {pools.length === 0 && <p class="quiet">There is no pool. An operator can add one: carma pool add slurm NAME</p>}
      {pools.map(pool => (
        <PoolView key={pool.name} pool={pool} reload={reload} />
      ))}
    </section>
  );
}

const PILOTS: ColumnOf<Pilot>[] = [
  { name: "Pilot", cell: ({ name }) => name, order: ({ name }) => name, room: 200 },
  { name: "Batch job", cell: pilot => pilot.batch_job ?? UNKNOWN, room: 110 },
  { name: "Requested", cell: ({ requested }) => <Ago at={requested} />, order: ({ requested }) => requested, room: 120 },
  { name: "State", cell: pilot => <StateCell state={pilotState(pilot)} />, order: pilot => pilotState(pilot).word, room: ROOMY },
  { name: "Slurm state", cell: pilot => <span class="reason">{pilot.batch_state ?? ""}</span>, room: ROOMY, lesser: true },
];

function PoolView({ pool, reload }: { pool: PoolDetail; reload: () => void }) {
  const state = poolState(pool);
  return (
    <article class="pool" aria-label={`Pool ${pool.name}`}>
      <div class="pool-head">
        <h3>{pool.name}</h3>
        <Badge tone={state.tone}>{state.word}</Badge>
        <span class="quiet">{pilotCounts(pool)}</span>
        <PoolButtons pool={pool} reload={reload} />
      </div>
      {state.reason && <p>{pool.paused ? `This pool requests no pilots: paused ${state.reason}.` : `Now: ${state.reason}.`}</p>}
      <dl class="facts">
        {poolFacts(pool).map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
      </dl>
      <Table
        caption={`Pilots of pool ${pool.name}`}
        columns={PILOTS}
        rows={pool.pilots}
        keyOf={({ name }) => name}
        empty="This pool has no pilots now."
      />
    </article>
  );
}

/** For operators. */
function PoolButtons({ pool, reload }: { pool: PoolDetail; reload: () => void }) {
  const me = useObservable(myself);
  const [asking, setAsking] = useState(false);
  if (!me?.operator || pool.removed) return null;
  const verb = pool.paused ? "Resume" : "Pause";
  const act = async () => {
    await post("/v1/pools/{pool}", { path: { pool: pool.name }, body: pool.paused ? "resume" : "pause" });
    reload();
  };
  return (
    <div class="buttons">
      <button type="button" aria-label={`${verb} pool ${pool.name}`} onClick={() => setAsking(true)}>
        {verb}
      </button>
      {asking && (
        <ConfirmDialog title={`${verb} pool ${pool.name}?`} confirm={`${verb} ${pool.name}`} act={act} close={() => setAsking(false)}>
          <p>
            {pool.paused
              ? "The pool requests pilots again."
              : "The pool requests no more pilots until you resume it. Its current pilots continue."}
          </p>
        </ConfirmDialog>
      )}
    </div>
  );
}
