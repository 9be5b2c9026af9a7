// Help: about CARMA, keyboard shortcuts, terms.

import { KeyList } from "../components/keys";
import { Fact } from "../components/marks";
import { duration } from "../lib/format";
import { useObservable } from "../lib/observable";
import { exactly } from "../lib/time";
import { useNow } from "../live/clock";
import { managerStatus, upFor } from "../live/manager";

const WORDS: [string, string][] = [
  ["Reserved", "GPU memory that is set aside for a job. A job can use more if the GPU has it."],
  ["Attempt", "One start of a job. A job that runs out of memory or loses its GPU is requeued and starts again."],
  ["Recovering", "The job ran out of GPU memory. It waits to start again with more memory reserved."],
  ["Preempted", "The job was stopped for another job. It waits to start again."],
  ["Drained", "The GPU takes no new jobs. Jobs that run on it continue. Operators drain and resume GPUs."],
  ["Held", "The job waits until its user or an operator releases it."],
  ["Run time", "Time that the job ran, summed over all its attempts."],
  ["Total time", "Time from submission to the end, including waiting."],
  ["GPU-hours", "Time on GPUs multiplied by the number of GPUs. A shared GPU counts in full for each job."],
];

export function Help() {
  const status = useObservable(managerStatus);
  const now = useNow();
  return (
    <>
      <h1>Help</h1>
      <section aria-labelledby="about-title">
        <h2 id="about-title">About</h2>
        <p>
          CARMA is a collocation-aware resource manager for GPU servers: it queues jobs and runs several of them on one GPU where that is
          safe. These pages update by themselves. The command line (<code>carma --help</code>) can do the same and more.
        </p>
        {status && (
          <dl class="facts">
            <Fact name="Version">{status.version}</Fact>
            <Fact name="GPUs">{status.gpu_source}</Fact>
            <Fact name="Up">{duration(upFor(status))}</Fact>
            <Fact name="Time of the manager">{exactly(now)}</Fact>
          </dl>
        )}
        {status && status.speed !== 1 && (
          <p class="quiet">
            The GPUs are emulated. Their time runs {status.speed} times as fast as real time. All times on these pages are emulated.
          </p>
        )}
      </section>
      <section aria-labelledby="keys-help-title">
        <h2 id="keys-help-title">Keyboard shortcuts</h2>
        <KeyList />
      </section>
      <section aria-labelledby="words-title">
        <h2 id="words-title">Terms</h2>
        <dl class="words">
          {[...(status?.metrics ?? []).map(({ label, about }) => [label, about] as const), ...WORDS].map(([word, meaning]) => (
            <div key={word}>
              <dt>{word}</dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
      </section>
    </>
  );
}
