// Submits a finished job once more, after a dialog.

import { useState } from "preact/hooks";
import { send } from "../api/request";
import type { JobDetail } from "../api/schema";
import { jobNumber } from "../lib/format";
import { useObservable } from "../lib/observable";
import { myself } from "../live/manager";
import { toJob } from "../router";
import { ConfirmDialog } from "./dialog";

/** For the job's own user. */
export function Resubmit({ job }: { job: JobDetail }) {
  const me = useObservable(myself);
  const [asking, setAsking] = useState(false);
  if (me?.uid !== job.owner.uid) return null;
  const number = jobNumber(job.id, job.array);
  const act = async () => {
    const answer = await send("POST", `/v1/jobs/${number}/resubmit`, {});
    const { jobs } = (await answer.json()) as { jobs: number[] };
    location.hash = toJob(jobs[0] ?? job.id);
  };
  return (
    <div class="buttons">
      <button type="button" onClick={() => setAsking(true)}>
        Resubmit
      </button>
      {asking && (
        <ConfirmDialog title={`Resubmit job ${number}?`} confirm={`Resubmit job ${number}`} act={act} close={() => setAsking(false)}>
          <p>CARMA submits the same request again, as a new job.</p>
        </ConfirmDialog>
      )}
    </div>
  );
}
