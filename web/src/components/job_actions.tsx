// Actions on a job, for those who may, after a dialog.

import { useState } from "preact/hooks";
import { patch, post } from "../api/client";
import { Refused } from "../api/request";
import type { ActionResult, JobDetail, Phase } from "../api/schema";
import { jobNumber } from "../lib/format";
import { useObservable } from "../lib/observable";
import { LAUNCHED } from "../lib/words";
import { mayActFor, myself } from "../live/manager";
import { ConfirmDialog } from "./dialog";
import { Resubmit } from "./resubmit";

type JobAction = "cancel" | "hold" | "release" | "requeue" | "priority";

const WAITING: Phase[] = ["estimating", "queued", "recovering", "preempted"];

const ACTIONS: { action: JobAction; name: string; phases: readonly Phase[]; effect: string; danger?: boolean }[] = [
  { action: "hold", name: "Hold", phases: WAITING, effect: "The job waits until you release it." },
  { action: "release", name: "Release", phases: ["held", "estimating"], effect: "The job waits in the queue again." },
  {
    action: "requeue",
    name: "Requeue",
    phases: LAUNCHED,
    effect: "CARMA stops the job and puts it back into the queue. A job that supports it writes a checkpoint first.",
  },
  { action: "priority", name: "Priority", phases: [...WAITING, ...LAUNCHED, "held"], effect: "Jobs with a higher priority start first." },
  { action: "cancel", name: "Cancel", phases: [...WAITING, "held"], effect: "The job will not run.", danger: true },
  {
    action: "cancel",
    name: "Cancel",
    phases: LAUNCHED,
    effect: "The job gets SIGTERM. If it does not end, it is killed. Work since its last checkpoint is lost.",
    danger: true,
  },
];

/** An action that one job refuses is an error. */
function throwIfRefused({ not_done: [refused] = [] }: ActionResult): void {
  if (refused) throw new Refused(409, "conflict", refused.reason);
}

export function JobActions({ job, done }: { job: JobDetail; done: () => void }) {
  const me = useObservable(myself);
  const [requested, setRequested] = useState<JobAction>();
  const [priority, setPriorityText] = useState(String(job.request.schedule?.priority ?? 0));
  if (job.phase === "done") return <Resubmit job={job} />;
  if (!mayActFor(me, job.owner.uid)) return <p class="quiet right">Only {job.owner.name} and operators can change this job.</p>;
  const possible = ACTIONS.filter(({ phases }) => phases.includes(job.phase));
  const number = jobNumber(job.id, job.array);
  const chosen = possible.find(({ action }) => action === requested);
  const act = async () => {
    if (requested === "priority")
      throwIfRefused(await patch("/v1/jobs/{job}", { path: { job: number }, body: { priority: Number(priority) } }));
    else if (requested) throwIfRefused(await post(`/v1/jobs/{job}/${requested}`, { path: { job: number } }));
    done();
  };
  return (
    <div class="buttons">
      {possible.map(({ action, name, danger }) => (
        <button key={action} type="button" class={danger ? "danger" : undefined} onClick={() => setRequested(action)}>
          {name}
        </button>
      ))}
      {chosen && (
        <ConfirmDialog
          title={chosen.action === "priority" ? `Priority of job ${number}` : `${chosen.name} job ${number}?`}
          confirm={chosen.action === "priority" ? "Set priority" : `${chosen.name} job ${number}`}
          danger={chosen.danger ?? false}
          act={act}
          close={() => setRequested(undefined)}
        >
          <p>{chosen.effect}</p>
          {chosen.action === "priority" && (
            <label>
              Priority
              <input
                type="number"
                step="1"
                required
                value={priority}
                max={me?.operator ? undefined : 0}
                onInput={event => setPriorityText(event.currentTarget.value)}
              />
              {!me?.operator && <span class="hint">Only operators can set a priority above 0.</span>}
            </label>
          )}
        </ConfirmDialog>
      )}
    </div>
  );
}
