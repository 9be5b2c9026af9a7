// A user: jobs, GPU-hours, energy, quota, fair share.

import { get } from "../api/client";
import type { QuotaDetail, ShareRow, UserSummary } from "../api/schema";
import { Choices } from "../components/choices";
import { EnergyBars } from "../components/energy_bars";
import { Counts } from "../components/job_cell";
import { Fact, Loaded, Pending } from "../components/marks";
import { energy, figures, gpuHours, memory } from "../lib/format";
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

/** Sums of a period, the quota, and the fair share. */
async function loadUsage(user: number, span: Span, signal: AbortSignal) {
  const since = startOf(span, await managerTime());
  const period = since === undefined ? {} : { since };
  const [usage, days] = await Promise.all([
    get("/v1/users/{user}", { path: { user }, query: period, signal }),
    get("/v1/energy", { query: { by: "day", ahead: minutesAhead(), user, ...period }, signal }),
  ]);
  return { usage, days: days.sums };
}

export function UserPage({ argument }: { argument: string }) {
  const user = Number(argument);
  const { query } = useObservable(route);
  const span = spanOf(query.get("span"));
  const live = useLive(signal => loadUsage(user, span, signal), ["jobs"], `${user} ${span}`, 5000);
  const queue = useLive(signal => loadQueue({ each: SHOWN, user }, signal), ["jobs"], argument);
  return (
    <>
      <h1>User {live.data?.usage.name ?? argument}</h1>
      <div class="filters">
        <Choices label="Period" options={SPANS} chosen={span} choose={chosen => setQuery({ span: chosen })} />
      </div>
      <Loaded live={live}>
        {({ usage, days }) => (
          <>
            {Object.values(usage.jobs).some(count => count > 0) ? (
              <Sums summary={usage} />
            ) : (
              <p class="quiet">This user has no jobs in this period.</p>
            )}
            <Quota quota={usage.quota} />
            <FairShare shares={usage.shares} />
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

/** What running jobs use of the quota; what is not limited is not listed. */
function Quota({ quota }: { quota: QuotaDetail }) {
  const parts = [
    { name: "Running jobs", used: `${quota.jobs}`, limit: quota.jobs_limit, text: `${quota.jobs_limit}` },
    { name: "GPUs (a shared GPU counts for each job)", used: `${quota.gpus}`, limit: quota.gpus_limit, text: `${quota.gpus_limit}` },
    { name: "Reserved GPU memory", used: memory(quota.memory), limit: quota.memory_limit, text: memory(quota.memory_limit) },
  ].filter(({ limit }) => limit !== null && limit !== undefined);
  return (
    <section aria-labelledby="quota-title">
      <h2 id="quota-title">Quota</h2>
      {parts.length > 0 ? (
        <dl class="facts">
          {parts.map(({ name, used, text }) => (
            <Fact key={name} name={name}>
              {used} of {text}
            </Fact>
          ))}
        </dl>
      ) : (
        <p class="quiet">This user has no quota.</p>
      )}
    </section>
  );
}

/** The fair share, in each group of the user. */
function FairShare({ shares }: { shares: readonly ShareRow[] }) {
  return (
    <section aria-labelledby="share-title">
      <h2 id="share-title">Fair share</h2>
      {shares.length === 0 && <p class="quiet">Fair share is off, or this user has not used GPUs yet.</p>}
      {shares.map(share => (
        <dl class="facts" key={share.gid}>
          <Fact name="Group">{share.group}</Fact>
          <Fact name="Share of the user">{figures(share.share)}</Fact>
          <Fact name="Share of the group">{figures(share.group_share)}</Fact>
          <Fact name="Recent GPU-hours (older ones count less)">{gpuHours(share.gpu_seconds)}</Fact>
          <Fact name="GPUs in use now">{figures(share.gpus)}</Fact>
          <Fact name="GPU-hours per share (lowest starts first)">{gpuHours(share.usage_per_share)}</Fact>
        </dl>
      ))}
    </section>
  );
}
