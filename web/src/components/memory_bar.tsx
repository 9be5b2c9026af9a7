// A GPU's memory now: the part of each job, and the reserved memory.

import type { GpuDetail } from "../api/schema";
import { jobNumber, memory } from "../lib/format";
import { useJobColour } from "../live/colours";

/** The text for screen readers. */
function memoryText(gpu: GpuDetail): string {
  const jobs = gpu.tenants.map(({ attempt, array, memory: has }) => `job ${jobNumber(attempt.job, array)} ${memory(has)}`);
  return `${memory(gpu.memory_used)} of ${memory(gpu.memory)} in use, ${memory(gpu.reserved)} reserved${jobs.length > 0 ? `: ${jobs.join(", ")}` : ""}`;
}

export function MemoryBar({ gpu }: { gpu: GpuDetail }) {
  const jobColour = useJobColour();
  const share = (mib: number) => `${Math.min(100, (100 * mib) / gpu.memory)}%`;
  const ours = gpu.tenants.reduce((sum, tenant) => sum + (tenant.memory ?? 0), 0);
  const others = Math.max(0, (gpu.memory_used ?? 0) - ours);
  return (
    <div class="memory-bar" role="img" aria-label={`Memory: ${memoryText(gpu)}`} title={memoryText(gpu)}>
      {gpu.tenants.map(({ attempt, memory: has }) => (
        <span key={attempt.job} class="part" style={{ width: share(has ?? 0), background: jobColour(attempt.job) ?? "var(--neutral)" }} />
      ))}
      {others > 0 && <span class="part others" style={{ width: share(others) }} />}
      {gpu.reserved > 0 && <span class="reserved" style={{ left: `min(${share(gpu.reserved)}, calc(100% - 2px))` }} />}
    </div>
  );
}
