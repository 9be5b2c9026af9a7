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
        <p class="banner bad">The manager does not answer; the data may be old. The page keeps trying. Running jobs go on.</p>
      )}
      {state !== "away" && status?.observes && <p class="banner">The manager only observes: it launches nothing.</p>}
      {state !== "away" && status?.draining && (
        <p class="banner">The manager is draining: it launches nothing more, and ends when nothing runs.</p>
      )}
    </div>
  );
}
