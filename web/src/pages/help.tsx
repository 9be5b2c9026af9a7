// Help: the page, its words, its keys.

import { KeyList } from "../components/keys";
import { Fact } from "../components/marks";
import { duration } from "../lib/format";
import { useObservable } from "../lib/observable";
import { exactly } from "../lib/time";
import { useNow } from "../live/clock";
import { managerStatus, upFor } from "../live/manager";

const WORDS: [string, string][] = [
  ["Promised", "Memory that is kept for a job on a GPU. A job may take more, if it is there; then it is recovered should memory run out."],
  ["Attempt", "One launch of a job. A job that runs out of memory, or loses its GPU, is put back and launched again."],
  ["Recovering", "It ran out of GPU memory, and waits to be launched again with more memory reserved."],
  ["Drained", "An operator keeps a GPU from taking anything new. Jobs on it go on."],
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
          CARMA is a collocation-aware resource manager for servers with GPUs. This page shows what its manager knows, as it changes; the
          command line (<code>carma --help</code>) does the same and more.
        </p>
        {status && (
          <dl class="facts">
            <Fact name="Version">{status.version}</Fact>
            <Fact name="Manages">{status.world}</Fact>
            <Fact name="Up for">{duration(upFor(status))}</Fact>
            <Fact name="The manager's clock">{exactly(now)}</Fact>
          </dl>
        )}
        {status && status.speed !== 1 && (
          <p class="quiet">The GPUs are emulated, and their time passes {status.speed} times as fast as ours. All times here are theirs.</p>
        )}
      </section>
      <section aria-labelledby="keys-help-title">
        <h2 id="keys-help-title">Keys</h2>
        <KeyList />
      </section>
      <section aria-labelledby="words-title">
        <h2 id="words-title">Words</h2>
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
