// Says when the manager cannot be reached, and when it is observing, draining or emulated.

import { signedOut } from "../api/session";
import { useObservable } from "../lib/observable";
import { connection } from "../live/feed";
import { managerStatus } from "../live/manager";

export function Banner() {
  const state = useObservable(connection);
  const out = useObservable(signedOut);
  const status = useObservable(managerStatus);
  return (
    <div role="status" class="banners">
      {state === "away" && !out && (
        <p class="banner bad">The manager does not answer. The data on this page may be old. Running jobs continue. Reconnecting …</p>
      )}
      {state !== "away" && status?.observes && <p class="banner">The manager only observes: it does not start jobs.</p>}
      {state !== "away" && status?.draining && (
        <p class="banner">The manager is draining: it starts no more jobs and stops when all jobs have ended.</p>
      )}
    </div>
  );
}
