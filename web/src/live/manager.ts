// How the manager is, and who we are to it: what every page needs.

import { me as loadMe, status as loadStatus } from "../api/calls";
import { reasonOf } from "../api/request";
import type { Me, Status } from "../api/types";
import { Observable } from "../lib/observable";
import { setClock } from "./clock";
import { concerns, listen } from "./feed";

const AT_MOST_EVERY = 2000;

/** For how long the manager is up, by its own clock, which may run ahead of ours. */
export const upFor = ({ up, speed }: Status): number => up * speed;

export const managerStatus = new Observable<Status | undefined>(undefined);
export const myself = new Observable<Me | undefined>(undefined);

/** Whether we may act on a job of this user's. */
export const mayActFor = (me: Me | undefined, uid: number): boolean => me !== undefined && (me.operator || me.uid === uid);

async function look(signal: AbortSignal): Promise<void> {
  try {
    const status = await loadStatus(signal);
    setClock(status.now, status.speed);
    managerStatus.set(status);
    if (!myself.get()) myself.set(await loadMe(signal));
  } catch (error) {
    // The banner says that the manager is away, the form that we are signed out.
    if (!signal.aborted) console.debug(reasonOf(error));
  }
}

/** Keeps both up to date until it is told to stop. */
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
