// All users with jobs: jobs, GPU-hours, energy.

import { get } from "../api/client";
import type { JobCounts, UserSummary } from "../api/schema";
import { Choices } from "../components/choices";
import { Loaded, UserLink } from "../components/marks";
import { type ColumnOf, Table } from "../components/table";
import { energies, gpuHours } from "../lib/format";
import { useObservable } from "../lib/observable";
import { SPANS, spanOf, startOf } from "../lib/spans";
import { GPU_HOURS_HINT } from "../lib/words";
import { managerTime } from "../live/clock";
import { useLive } from "../live/use_live";
import { route, setQuery } from "../router";

const COUNTS: [keyof JobCounts, string][] = [
  ["running", "Running"],
  ["waiting", "Waiting"],
  ["held", "Held"],
  ["succeeded", "Succeeded"],
  ["failed", "Failed"],
  ["out_of_memory", "Out of memory"],
  ["stopped", "Cancelled"],
];

function columns(users: readonly UserSummary[]): ColumnOf<UserSummary>[] {
  const inColumn = energies(Math.max(0, ...users.map(({ energy }) => energy)));
  return [
    { name: "User", cell: ({ user, name }) => <UserLink uid={user} name={name} />, order: ({ name }) => name, room: 140 },
    ...COUNTS.map(
      ([state, name]): ColumnOf<UserSummary> => ({
        name,
        cell: ({ jobs }) => jobs[state] || "",
        order: ({ jobs }) => jobs[state],
        number: true,
        room: 100,
      }),
    ),
    { name: "GPU-hours", cell: user => gpuHours(user.gpu_time), order: user => user.gpu_time, number: true, room: 100 },
    { name: "Energy", cell: user => inColumn(user.energy), order: ({ energy }) => energy, number: true, room: 100 },
  ];
}

export function UsersPage() {
  const { query } = useObservable(route);
  const span = spanOf(query.get("span"));
  const load = async (signal: AbortSignal) => {
    const since = startOf(span, await managerTime());
    return get("/v1/users", { query: since === undefined ? {} : { since }, signal });
  };
  const live = useLive(load, ["jobs"], span, 5000);
  return (
    <>
      <h1>Users</h1>
      <div class="filters">
        <Choices label="Period" options={SPANS} chosen={span} choose={chosen => setQuery({ span: chosen })} />
      </div>
      <p class="quiet">Jobs that ended, GPU-hours and energy are of this period. {GPU_HOURS_HINT}</p>
      <Loaded live={live}>
        {users => (
          <Table
            caption="Users"
            columns={columns(users)}
            rows={users}
            keyOf={({ user }) => user}
            empty="No user has jobs in this period."
          />
        )}
      </Loaded>
    </>
  );
}
