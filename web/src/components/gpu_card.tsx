// The card of a GPU.

import type { GpuDetail, RecentSamples } from "../api/schema";
import { deviceName, memory, percent, power } from "../lib/format";
import { LOST_GPU } from "../lib/words";
import { useMetrics } from "../live/metrics";
import { toGpu } from "../router";
import { Badge, JobLink } from "./marks";
import { MemoryBar } from "./memory_bar";
import { Sparkline } from "./sparkline";

/** A GPU that takes no jobs. */
export function GpuState({ gpu }: { gpu: GpuDetail }) {
  if (gpu.lost) return <Badge tone="bad">lost</Badge>;
  if (isSilent(gpu)) return <Badge tone="bad">no answer</Badge>;
  if (gpu.drained_for) return <Badge tone="bad">drained: faults</Badge>;
  if (gpu.drained) return <Badge tone="memory">drained</Badge>;
  return null;
}

/** Whether its driver calls fail or hang. */
export const isSilent = (gpu: GpuDetail) => gpu.silent_for !== undefined && gpu.silent_for !== null;

interface CardProps {
  gpu: GpuDetail;
  samples: RecentSamples | undefined;
  dense: boolean;
}

export function GpuCard({ gpu, samples, dense }: CardProps) {
  return (
    <li class={["gpu-card", dense && "dense", gpu.lost && "lost"].filter(Boolean).join(" ")}>
      <div class="gpu-head">
        <h3>
          <a href={toGpu(gpu.device)}>{deviceName(gpu.device)}</a>
        </h3>
        <GpuState gpu={gpu} />
        {gpu.node && (
          <span class="quiet gpu-node" title={gpu.node}>
            {gpu.node}
          </span>
        )}
        {!dense && <span class="quiet gpu-name">{gpu.name}</span>}
        {!gpu.lost && <span class="gpu-power">{power(gpu.power)}</span>}
      </div>
      {gpu.lost ? <p class="reason">{LOST_GPU}</p> : <GpuFigures gpu={gpu} samples={samples} dense={dense} />}
      <ul class="gpu-tenants">
        {gpu.tenants.map(({ attempt, name, array, user, memory: has, borrowed }) => (
          <li key={attempt.job}>
            <JobLink id={attempt.job} name={name} array={array} />
            {!dense && <span class="quiet"> {user}</span>}
            {!dense && borrowed !== undefined && <span class="quiet"> {memory(borrowed)} borrowed</span>}
            {!dense && <span class="value">{memory(has)}</span>}
          </li>
        ))}
        {!gpu.lost && gpu.foreign > 0 && (
          <li class="quiet">
            {gpu.foreign} other {gpu.foreign === 1 ? "process" : "processes"}
          </li>
        )}
        {!gpu.lost && gpu.tenants.length === 0 && gpu.foreign === 0 && <li class="quiet">idle</li>}
      </ul>
    </li>
  );
}

/** Memory and utilisation now. */
function GpuFigures({ gpu, samples, dense }: CardProps) {
  const [metric] = useMetrics(gpu.utilisation);
  return (
    <>
      <MemoryBar gpu={gpu} />
      <p class="gpu-figures">
        <span>
          {memory(gpu.memory_used)} <span class="quiet">of {memory(gpu.memory)}</span>
        </span>
        {gpu.throttling && gpu.throttling.length > 0 && <Badge tone="memory">throttled: {gpu.throttling.join(", ")}</Badge>}
        {!dense && gpu.reserved > 0 && <span class="quiet">{memory(gpu.reserved)} reserved</span>}
      </p>
      {metric && (
        <div class="gpu-activity">
          <span class="quiet">{metric.label}</span>
          <Sparkline
            values={samples?.utilisation[metric.id] ?? []}
            label={`${metric.label} of the last ten minutes, now ${percent(gpu.utilisation[metric.id])}`}
          />
          <span class="value">{percent(gpu.utilisation[metric.id])}</span>
        </div>
      )}
    </>
  );
}
