// The header: name, pages, and the switch between light and dark.

import { signOut, token } from "../api/session";
import { useObservable } from "../lib/observable";
import { setTheme, type Theme, theme } from "../lib/theme";
import { hasCluster, managerStatus, myself } from "../live/manager";
import { to } from "../router";
import { UserLink } from "./marks";

/** The pages, each with its key after g. */
export const PLACES = [
  { page: "", name: "Overview", key: "o" },
  { page: "queue", name: "Queue", key: "q" },
  { page: "servers", name: "Servers", key: "v" },
  { page: "history", name: "History", key: "h" },
  { page: "users", name: "Users", key: "u" },
  { page: "energy", name: "Energy", key: "e" },
  { page: "what-if", name: "What if", key: "w" },
  { page: "submit", name: "Submit", key: "n" },
  { page: "notifications", name: "Notifications", key: "t" },
  { page: "help", name: "Help", key: "a" },
] as const;

/** The pages in the header. Without servers and pools, their page is left out. */
export function usePlaces(current = ""): readonly { page: string; name: string; key: string }[] {
  const several = hasCluster(useObservable(managerStatus)) || current === "servers";
  return PLACES.filter(({ page }) => several || page !== "servers");
}

const THEMES: Theme[] = ["system", "light", "dark"];

export function Header({ current }: { current: string }) {
  const me = useObservable(myself);
  const given = useObservable(token);
  const chosen = useObservable(theme);
  return (
    <header class="top">
      <a class="brand" href={to("")}>
        <img src="/assets/favicon.svg" alt="" width="22" height="22" />
        CARMA
      </a>
      <nav aria-label="Pages">
        <ul>
          {usePlaces(current).map(({ page, name }) => (
            <li key={page}>
              <a href={to(page)} aria-current={page === current ? "page" : undefined}>
                {name}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="top-right">
        {me && (
          <span class="quiet me">
            <UserLink uid={me.uid} name={me.name} />
            {me.operator && ", operator"}
          </span>
        )}
        <label class="theme">
          <span class="unseen">Colours</span>
          <select value={chosen} onChange={event => setTheme(event.currentTarget.value as Theme)}>
            {THEMES.map(name => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {given && (
          <button type="button" class="plain" onClick={signOut}>
            Sign out
          </button>
        )}
      </div>
    </header>
  );
}
