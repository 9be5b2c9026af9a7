// The manager's status, and the user: what every page needs.

import { get } from "../api/client";
import { messageOf } from "../api/request";
import type { Me, ServerDetail, Status } from "../api/schema";
import { Observable } from "../lib/observable";
import { setClock } from "./clock";
import { concerns, listen } from "./feed";

const AT_MOST_EVERY = 2000;

/** How long the manager is up, by its own clock. */
export const upFor = ({ up, speed }: Status): number => up * speed;

export const managerStatus = new Observable<Status | undefined>(undefined);
export const myself = new Observable<Me | undefined>(undefined);

/** The servers of agents. */
export const servers = new Observable<ServerDetail[]>([]);

/** Whether there are servers of agents, or pools that could bring some. */
export const hasCluster = (status: Status | undefined): boolean => (status?.servers ?? 0) + (status?.pools ?? 0) > 0;

/** Whether the user may act on jobs of another. */
export const mayActFor = (me: Me | undefined, uid: number): boolean => me !== undefined && (me.operator || me.uid === uid);

async function look(signal: AbortSignal): Promise<void> {
  try {
    const status = await get("/v1/status", { signal });
    setClock(status.now, status.speed);
    managerStatus.set(status);
    if (status.servers) servers.set(await get("/v1/servers", { signal }));
    else if (servers.get().length > 0) servers.set([]);
    if (!myself.get()) myself.set(await get("/v1/me", { signal }));
  } catch (error) {
    // The banner shows that the manager is away, the form that the user is signed out.
    if (!signal.aborted) console.debug(messageOf(error));
  }
}

/** Keeps both up to date until it is aborted. */
export function watchManager(signal: AbortSignal): void {
  let due = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const consider = () => {
    if (timer !== undefined || signal.aborted) return;
    timer = setTimeout(
      () => {
        timer = undefined;
        due = performance.now() + AT_MOST_EVERY;
        void look(signal);
      },
      Math.max(0, due - performance.now()),
    );
  };
  myself.set(undefined);
  const stop = listen(changed => concerns(changed, ["jobs", "machine", "gpus"]) && consider());
  signal.addEventListener("abort", () => {
    stop();
    clearTimeout(timer);
  });
  consider();
}
