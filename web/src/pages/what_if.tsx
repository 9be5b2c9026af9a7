// What-if: the manager replays recent jobs in the simulator under other policies.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { messageOf } from "../api/request";
import type { WhatIf, WhatIfRun } from "../api/schema";
import { Choices } from "../components/choices";
import { Policies } from "../components/policies";
import { type ColumnOf, Table } from "../components/table";
import { change, count, duration, energy, figures, UNKNOWN } from "../lib/format";
import { managerTime } from "../live/clock";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const SPANS = { "6": "6 h", "24": "24 h", "72": "3 d", "168": "7 d" };
type Span = keyof typeof SPANS;

interface Answer {
  result?: WhatIf;
  problem?: string;
  /** When the running simulation was started. */
  startedAt?: number;
}

export function WhatIfPage() {
  const [span, setSpan] = useState<Span>("24");
  const [policies, setPolicies] = useState("");
  const [answer, setAnswer] = useState<Answer>({});
  const under = useRef<AbortController | null>(null);
  useEffect(() => () => under.current?.abort(), []);

  const run = async (event: Event) => {
    event.preventDefault();
    under.current?.abort();
    const ended = new AbortController();
    under.current = ended;
    setAnswer({ startedAt: performance.now() });
    // To the minute, so that the manager can answer from its cache.
    const since = Math.floor((await managerTime()) / MINUTE) * MINUTE - Number(span) * HOUR;
    try {
      const result = await get("/v1/what-if", { query: { since, policies: policies.replace(/\s+/g, "") }, signal: ended.signal });
      if (!ended.signal.aborted) setAnswer({ result });
    } catch (error) {
      if (!ended.signal.aborted) setAnswer({ problem: messageOf(error) });
    }
  };
  return (
    <>
      <h1>What if</h1>
      <p>
        The simulator replays recent jobs under the current settings and under other policies. It shows what each policy would have changed.
      </p>
      <form class="filters" onSubmit={run}>
        <Choices label="Submitted within" options={SPANS} chosen={span} choose={setSpan} />
        <label>
          Policies
          <input
            type="text"
            placeholder="empty: a selection"
            value={policies}
            onInput={event => setPolicies(event.currentTarget.value)}
            aria-describedby="policies-hint"
          />
        </label>
        <button type="submit" class="primary" disabled={answer.startedAt !== undefined}>
          Replay
        </button>
      </form>
      <Policies />
      <div aria-live="polite" class="outcome">
        {answer.startedAt !== undefined && <Working since={answer.startedAt} />}
        {answer.problem && <p class="notice bad">{answer.problem}</p>}
        {answer.result && <Result result={answer.result} />}
      </div>
    </>
  );
}

function Working({ since }: { since: number }) {
  const [now, setNow] = useState(since);
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 500);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="working">
      <progress aria-label="The simulator is running" />{" "}
      <span aria-hidden="true">The simulator is running: {duration((now - since) / 1000)}.</span>
    </div>
  );
}

interface Row {
  fate: WhatIfRun;
  kind: "measured" | "simulated, current settings" | "simulated";
}

/** A column with its difference to the measured value. */
function compared(
  name: string,
  of: (fate: WhatIfRun) => number | null | undefined,
  format: (value: number) => string,
  measured: WhatIfRun,
): ColumnOf<Row> {
  const base = of(measured);
  return {
    name,
    number: true,
    room: 140,
    order: ({ fate }) => of(fate) ?? -1,
    cell: ({ fate, kind }) => {
      const value = of(fate);
      if (value === null || value === undefined) return UNKNOWN;
      const ratio = kind !== "measured" && base ? change(value / base) : "";
      return (
        <span>
          {format(value)} {ratio && <span class="quiet">{ratio}</span>}
        </span>
      );
    },
  };
}

function Result({ result }: { result: WhatIf }) {
  const { measured } = result;
  const rows: Row[] = [
    { fate: measured, kind: "measured" },
    { fate: result.simulated, kind: "simulated, current settings" },
    ...result.others.map((fate): Row => ({ fate, kind: "simulated" })),
  ];
  const columns: ColumnOf<Row>[] = [
    {
      name: "Policy",
      cell: ({ fate, kind }) => (
        <span>
          {fate.policy} <span class="quiet">{kind}</span>
        </span>
      ),
      order: ({ fate }) => fate.policy,
    },
    compared("Makespan", ({ makespan }) => makespan, duration, measured),
    compared("Mean wait", ({ wait }) => wait, duration, measured),
    compared("Mean total time", ({ completion }) => completion, duration, measured),
    compared("95 % finished within", fate => fate.completion_p95, duration, measured),
    compared("Energy", fate => fate.energy, energy, measured),
    compared("Out of memory", fate => fate.out_of_memory, figures, measured),
  ];
  return (
    <>
      <p>
        {count(result.jobs, "job")} replayed. Simulated values are means of several runs. Percentages compare them with the measured values.
        The row “simulated, current settings” shows how exact the simulator is for these jobs.
      </p>
      <Table caption="Measured and simulated results" columns={columns} rows={rows} keyOf={({ fate, kind }) => `${kind} ${fate.policy}`} />
      {result.left_out.map(words => (
        <p key={words} class="quiet">
          {words}
        </p>
      ))}
    </>
  );
}
