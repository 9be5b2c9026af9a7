// Small parts of all pages: states, jobs, GPUs, times.

import type { ComponentChildren } from "preact";
import type { Ending } from "../api/schema";
import { endingTone, type Tone } from "../lib/colour";
import { ago, deviceName, duration, jobNumber, type Place } from "../lib/format";
import { useObservable } from "../lib/observable";
import { exactly, moment } from "../lib/time";
import { LOADING } from "../lib/words";
import { managerNow, useNow } from "../live/clock";
import { useJobColour } from "../live/colours";
import { servers } from "../live/manager";
import type { Live } from "../live/use_live";
import { to, toGpu, toJob } from "../router";

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** How a job or an attempt ended, in few words; the title says all. */
export function EndingBadge({ ending }: { ending: Ending }) {
  return (
    <span class={`badge ${endingTone(ending)}`} title={ending.text}>
      {ending.brief}
    </span>
  );
}

/** A job's colour, once it was on a GPU. */
export function Swatch({ job }: { job: number }) {
  const colour = useJobColour()(job);
  return colour ? <span class="swatch" style={{ "--colour": colour }} aria-hidden="true" /> : null;
}

/** A job by its number and name. */
export function JobLink(props: { id: number; name?: string | null | undefined; array?: Place }) {
  const { id, name, array } = props;
  return (
    <a class="job-link" href={toJob(id)}>
      <Swatch job={id} />
      <span class="job-number">{jobNumber(id, array)}</span>
      {name && (
        <span class="job-name" title={name}>
          {name}
        </span>
      )}
    </a>
  );
}

/** The node of a GPU that is not in the manager's own host. */
function useNode(device: string): string | undefined {
  const list = useObservable(servers);
  return list.find(({ id }) => device.startsWith(`s${id}/`))?.node;
}

export function GpuLink({ device }: { device: string }) {
  const node = useNode(device);
  return (
    <a href={toGpu(device)} title={node && `on ${node}`}>
      {deviceName(device)}
    </a>
  );
}

/** A GPU with its node. */
export function GpuOnNode({ device }: { device: string }) {
  const node = useNode(device);
  return (
    <>
      <a href={toGpu(device)}>{deviceName(device)}</a>
      {node && <span class="quiet"> on {node}</span>}
    </>
  );
}

export function GpuLinks({ devices }: { devices: string[] }) {
  return (
    <span class="gpu-links">
      {devices.map(device => (
        <GpuLink key={device} device={device} />
      ))}
    </span>
  );
}

/** A time, with all of it in the title. */
export function When({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={exactly(at)}>
      {moment(at, managerNow())}
    </time>
  );
}

export function Ago({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={exactly(at)}>
      {ago(at, managerNow())}
    </time>
  );
}

/** How long something has been going on. */
export function Elapsed({ since }: { since: number }) {
  return <span>{duration((useNow() - since) / 1000)} so far</span>;
}

/** A user, who has a page. */
export function UserLink({ uid, name }: { uid: number; name: string }) {
  return <a href={to("user", uid)}>{name}</a>;
}

/** Placeholder while data loads, or could not be loaded. */
export function Pending({ problem }: { problem: string | undefined }) {
  return problem ? (
    <p class="notice bad" role="alert">{`This could not be loaded: ${problem}`}</p>
  ) : (
    <p class="quiet" role="status">
      {LOADING}
    </p>
  );
}

/** Loaded data, dimmed while newer data loads; or a placeholder. */
export function Loaded<T>({ live, children }: { live: Live<T>; children: (data: T) => ComponentChildren }) {
  if (live.data === undefined) return <Pending problem={live.problem} />;
  return (
    <div class={live.stale ? "stale" : undefined} aria-busy={live.stale}>
      {live.stale && live.problem && <Pending problem={live.problem} />}
      {children(live.data)}
    </div>
  );
}

/** A figure with its name. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
