// What can be done to a job, where it may be done, after a question.

import { useState } from "preact/hooks";
import { actOn, type JobAct, setPriority } from "../api/calls";
import { Refused } from "../api/request";
import type { Acted, JobDetail, Phase } from "../api/types";
import { jobNumber } from "../lib/format";
import { useObservable } from "../lib/observable";
import { mayActFor, myself } from "../live/manager";
import { ConfirmDialog } from "./dialog";

type Doing = JobAct | "priority";

const WAITING: Phase[] = ["queued", "recovering", "preempted"];
const LAUNCHED: Phase[] = ["starting", "running"];

const DOINGS: { doing: Doing; name: string; phases: Phase[]; effect: string; danger?: boolean }[] = [
  { doing: "hold", name: "Hold", phases: WAITING, effect: "It waits until somebody releases it." },
  { doing: "release", name: "Release", phases: ["held"], effect: "It waits in the queue again." },
  {
    doing: "requeue",
    name: "Requeue",
    phases: LAUNCHED,
    effect: "It is stopped, after a checkpoint if it can write one, and put back into the queue.",
  },
  { doing: "priority", name: "Priority", phases: [...WAITING, ...LAUNCHED, "held"], effect: "Higher goes first." },
  { doing: "cancel", name: "Cancel", phases: [...WAITING, "held"], effect: "It will not run.", danger: true },
  {
    doing: "cancel",
    name: "Cancel",
    phases: LAUNCHED,
    effect: "It is told to end, and killed if it does not. What it has done since its last checkpoint is lost.",
    danger: true,
  },
];

/** What was not done to the one job that was asked for is an error. */
function insist({ not_done: [refused] = [] }: Acted): void {
  if (refused) throw new Refused(409, "conflict", refused.reason);
}

export function JobActions({ job, done }: { job: JobDetail; done: () => void }) {
  const me = useObservable(myself);
  const [asked, setAsked] = useState<Doing>();
  const [priority, setPriorityText] = useState(String(job.request.schedule?.priority ?? 0));
  if (job.phase === "done") return null;
  if (!mayActFor(me, job.owner.uid)) return <p class="quiet right">Only {job.owner.name} and operators act on it.</p>;
  const possible = DOINGS.filter(({ phases }) => phases.includes(job.phase));
  const number = jobNumber(job.id, job.array);
  const chosen = possible.find(({ doing }) => doing === asked);
  const act = async () => {
    if (asked === "priority") insist(await setPriority(number, Number(priority)));
    else if (asked) insist(await actOn(number, asked));
    done();
  };
  return (
    <div class="buttons">
      {possible.map(({ doing, name, danger }) => (
        <button key={doing} type="button" class={danger ? "danger" : undefined} onClick={() => setAsked(doing)}>
          {name}
        </button>
      ))}
      {chosen && (
        <ConfirmDialog
          title={chosen.doing === "priority" ? `Priority of job ${number}` : `${chosen.name} job ${number}?`}
          confirm={chosen.doing === "priority" ? "Set priority" : `${chosen.name} job ${number}`}
          danger={chosen.danger ?? false}
          act={act}
          close={() => setAsked(undefined)}
        >
          <p>{chosen.effect}</p>
          {chosen.doing === "priority" && (
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
              {!me?.operator && <span class="hint">Above 0 is for operators.</span>}
            </label>
          )}
        </ConfirmDialog>
      )}
    </div>
  );
}
