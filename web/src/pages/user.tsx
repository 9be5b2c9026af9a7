// A user: jobs, GPU-hours, energy, fair share.

import { get } from "../api/client";
import type { ShareRow, UserSummary } from "../api/schema";
import { Choices } from "../components/choices";
import { EnergyBars } from "../components/energy_bars";
import { Counts } from "../components/job_cell";
import { Fact, Loaded, Pending } from "../components/marks";
import { energy, figures, gpuHours } from "../lib/format";
import { useObservable } from "../lib/observable";
import { SPANS, type Span, spanOf, startOf } from "../lib/spans";
import { minutesAhead } from "../lib/time";
import { GPU_HOURS_HINT } from "../lib/words";
import { managerTime } from "../live/clock";
import { useLive } from "../live/use_live";
import { route, setQuery, to } from "../router";
import { Found } from "./history";
import { loadQueue, Parts, partsOf } from "./queue";

const SHOWN = 100;

/** Sums of a period, and the fair share. */
async function loadUsage(user: number, span: Span, signal: AbortSignal) {
  const since = startOf(span, await managerTime());
  const period = since === undefined ? {} : { since };
  const [[summary], days, shares] = await Promise.all([
    get("/v1/users", { query: { user, ...period }, signal }),
    get("/v1/energy", { query: { by: "day", ahead: minutesAhead(), user, ...period }, signal }),
    get("/v1/shares", { signal }),
  ]);
  return { summary, days: days.sums, share: shares.find(({ uid }) => uid === user) };
}

export function UserPage({ argument }: { argument: string }) {
  const user = Number(argument);
  const { query } = useObservable(route);
  const span = spanOf(query.get("span"));
  const usage = useLive(signal => loadUsage(user, span, signal), ["jobs"], `${user} ${span}`, 5000);
  const queue = useLive(signal => loadQueue({ each: SHOWN, user }, signal), ["jobs"], argument);
  return (
    <>
      <h1>User {usage.data?.summary?.name ?? argument}</h1>
      <div class="filters">
        <Choices label="Period" options={SPANS} chosen={span} choose={chosen => setQuery({ span: chosen })} />
      </div>
      <Loaded live={usage}>
        {({ summary, days, share }) => (
          <>
            {summary ? <Sums summary={summary} /> : <p class="quiet">This user has no jobs in this period.</p>}
            <FairShare share={share} />
            {days.length > 1 && <EnergyBars sums={days.toReversed()} />}
          </>
        )}
      </Loaded>
      {queue.data ? <Parts parts={partsOf(queue.data.jobs)} /> : <Pending problem={queue.problem} />}
      <section aria-labelledby="jobs-title">
        <header class="section-head">
          <h2 id="jobs-title">All jobs</h2>
          <a href={to("history", undefined, { user: argument })}>search in the history</a>
        </header>
        <Found wanted={{ user, limit: SHOWN }} group />
      </section>
    </>
  );
}

function Sums({ summary: { jobs, gpu_time: time, energy: joules } }: { summary: UserSummary }) {
  return (
    <section aria-label="Usage">
      <dl class="facts">
        <Fact name="Jobs">
          <Counts counts={jobs} />
        </Fact>
        <Fact name="GPU-hours">{gpuHours(time)}</Fact>
        <Fact name="Energy">{energy(joules)}</Fact>
      </dl>
      <p class="hint">{GPU_HOURS_HINT}</p>
    </section>
  );
}

function FairShare({ share }: { share: ShareRow | undefined }) {
  return (
    <section aria-labelledby="share-title">
      <h2 id="share-title">Fair share</h2>
      {share ? (
        <dl class="facts">
          <Fact name="Share of the user">{figures(share.share)}</Fact>
          <Fact name="Share of the group">{figures(share.group_share)}</Fact>
          <Fact name="Recent GPU-hours (older ones count less)">{gpuHours(share.gpu_seconds)}</Fact>
          <Fact name="GPUs in use now">{figures(share.gpus)}</Fact>
          <Fact name="GPU-hours per share (lowest starts first)">{gpuHours(share.usage_per_share)}</Fact>
        </dl>
      ) : (
        <p class="quiet">Fair share is off, or this user has not used GPUs yet.</p>
      )}
    </section>
  );
}
