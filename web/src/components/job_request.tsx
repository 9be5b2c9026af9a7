// What a job runs, what it needs, and its times.

import type { JobDetail } from "../api/schema";
import { count, duration, energy, memory } from "../lib/format";
import { quoted } from "../lib/parse";
import { useNow } from "../live/clock";
import { toArray } from "./job_cell";
import { Fact, UserLink, When } from "./marks";

function commandOf({ request: { command } }: JobDetail): string {
  if ("program" in command) return quoted(command.program);
  const { text, arguments: given = [] } = command.script;
  return given.length > 0 ? `${text}\n# called with ${quoted(given)}` : text;
}

/** Run time of all attempts, in seconds. */
const runTime = ({ attempts }: JobDetail, now: number): number =>
  attempts.reduce((sum, { launched, ended }) => sum + ((ended ?? now) - launched) / 1000, 0);

export function JobRequest({ job }: { job: JobDetail }) {
  const { request } = job;
  const { gpus = 1, memory: wanted, time_limit: limit, exclusive, mode, cpus, host_memory: hostMemory } = request.resources ?? {};
  const now = useNow();
  const command = commandOf(job);
  const needs = [
    count(gpus, "GPU"),
    wanted ? `${memory(wanted)} on each GPU` : "",
    exclusive ? "exclusive GPUs" : "",
    mode && mode !== "auto" ? `sharing: ${mode}` : "",
    cpus ? count(cpus, "CPU core") : "",
    hostMemory ? `${memory(hostMemory)} host memory` : "",
  ];
  const parameters = Object.entries(request.array?.parameters ?? {}).map(([name, value]) => `${name}=${value}`);
  return (
    <section aria-label="Request">
      {command && <pre class="command">{command}</pre>}
      <dl class="facts">
        <Fact name="User">
          <UserLink uid={job.owner.uid} name={job.owner.name} />
        </Fact>
        {request.directory && <Fact name="Directory">{request.directory}</Fact>}
        <Fact name="Needs">{needs.filter(Boolean).join(", ")}</Fact>
        {limit !== null && limit !== undefined && <Fact name="Time limit">{duration(limit)}</Fact>}
        {parameters.length > 0 && <Fact name="Parameters">{parameters.join(", ")}</Fact>}
        <Fact name="Priority">{request.schedule?.priority ?? 0}</Fact>
        {(request.schedule?.after ?? []).length > 0 && (
          <Fact name="Starts after">{request.schedule?.after?.map(after => after.job).join(", ")}</Fact>
        )}
        <Fact name="Submitted">
          <When at={job.submitted} />
        </Fact>
        {job.ended && (
          <Fact name="Ended">
            <When at={job.ended} />
          </Fact>
        )}
        {job.attempts.length > 0 && <Fact name="Run time">{duration(runTime(job, now))}</Fact>}
        <Fact name="Total time">{duration(((job.ended ?? now) - job.submitted) / 1000)}</Fact>
        <Fact name="Energy">{energy(job.energy)}</Fact>
        {job.array && (
          <Fact name="Array">
            <a href={toArray(job.array.array)}>all jobs of array {job.array.array}</a>
          </Fact>
        )}
      </dl>
    </section>
  );
}
