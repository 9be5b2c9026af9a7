// The header: name, pages, and the switch between light and dark.

import { signOut, token } from "../api/session";
import { useObservable } from "../lib/observable";
import { setTheme, type Theme, theme } from "../lib/theme";
import { hasCluster, managerStatus, myself } from "../live/manager";
import { to } from "../router";

/** The pages, each with its key after g. */
export const PLACES = [
  { page: "", name: "Server", key: "s" },
  { page: "queue", name: "Queue", key: "q" },
  { page: "servers", name: "Servers", key: "v" },
  { page: "history", name: "History", key: "h" },
  { page: "energy", name: "Energy", key: "e" },
  { page: "what-if", name: "What if", key: "w" },
  { page: "submit", name: "Submit", key: "n" },
  { page: "notifications", name: "Notifications", key: "t" },
  { page: "help", name: "Help", key: "a" },
] as const;

/** The pages that there are: without servers and pools, their page is left out. */
export function usePlaces(current = ""): { page: string; name: string; key: string }[] {
  const several = hasCluster(useObservable(managerStatus)) || current === "servers";
  if (!several) return PLACES.filter(({ page }) => page !== "servers");
  return PLACES.map(place => (place.page === "" ? { ...place, name: "Overview" } : place));
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
        {me && <span class="quiet me">{me.operator ? `${me.name}, operator` : me.name}</span>}
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
