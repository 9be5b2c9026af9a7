// The frame of all pages: navigation, the state of the connection, keys, and the page itself.

import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { signedOut, token } from "./api/session";
import { Banner } from "./components/banner";
import { Header } from "./components/header";
import { arriveAtSearch, Keys } from "./components/keys";
import { SignIn } from "./components/sign_in";
import { deviceName } from "./lib/format";
import { useObservable } from "./lib/observable";
import { follow } from "./live/feed";
import { watchManager } from "./live/manager";
import { Energy } from "./pages/energy";
import { Glance } from "./pages/glance";
import { GpuPage } from "./pages/gpu";
import { Help } from "./pages/help";
import { History } from "./pages/history";
import { JobPage } from "./pages/job";
import { Notifications } from "./pages/notifications";
import { QueuePage } from "./pages/queue";
import { ServersPage } from "./pages/servers";
import { Submit } from "./pages/submit";
import { UserPage } from "./pages/user";
import { UsersPage } from "./pages/users";
import { WhatIfPage } from "./pages/what_if";
import { route } from "./router";

/** A page gets the part of the address after its name. */
const PAGES: Record<string, { title: string; page: ComponentType<{ argument: string }> }> = {
  "": { title: "Overview", page: Glance },
  queue: { title: "Queue", page: QueuePage },
  servers: { title: "Servers", page: ServersPage },
  history: { title: "History", page: History },
  users: { title: "Users", page: UsersPage },
  user: { title: "User", page: UserPage },
  energy: { title: "Energy", page: Energy },
  "what-if": { title: "What if", page: WhatIfPage },
  submit: { title: "Submit", page: Submit },
  notifications: { title: "Notifications", page: Notifications },
  help: { title: "Help", page: Help },
  gpu: { title: "GPU", page: GpuPage },
  job: { title: "Job", page: JobPage },
};

export function App() {
  const { page: name, argument, visit } = useObservable(route);
  const given = useObservable(token);
  const refused = useObservable(signedOut);
  const main = useRef<HTMLElement>(null);
  const known = PAGES[name];
  const place = `${name}/${argument}`;
  const shown = useRef(place);

  useEffect(() => {
    if (refused) return;
    const ended = new AbortController();
    void follow(ended.signal);
    watchManager(ended.signal);
    return () => ended.abort();
  }, [given, refused]);

  useEffect(() => {
    document.title = `${known?.title ?? "Unknown page"}${argument ? ` ${deviceName(argument)}` : ""} · CARMA`;
    // A new page begins at its top, also for a screen reader.
    if (shown.current !== place) {
      shown.current = place;
      scrollTo(0, 0);
      if (!arriveAtSearch()) main.current?.focus({ preventScroll: true });
    }
  }, [place, known, argument]);

  const Page = known?.page;
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <Header current={name} />
      <Banner />
      <main id="main" ref={main} tabIndex={-1}>
        {refused ? <SignIn /> : Page ? <Page key={visit} argument={argument} /> : <p>This page does not exist.</p>}
      </main>
      <Keys />
    </>
  );
}
