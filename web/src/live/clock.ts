// The manager's time. Where GPUs are emulated it goes on faster than ours, so ours is never compared with its.

import { useEffect, useState } from "preact/hooks";

let told = Date.now();
let toldAt = performance.now();
let speed = 1;

let heard: () => void = () => {};
const hearing = new Promise<void>(resolve => {
  heard = resolve;
});

/** The manager said that it is this late. */
export function setClock(now: number, itsSpeed = speed): void {
  told = now;
  toldAt = performance.now();
  speed = itsSpeed;
  heard();
}

/** What time it is for the manager. */
export const managerNow = (): number => told + (performance.now() - toldAt) * speed;

/** The same, once the manager has told it: what is asked of the manager goes by its clock. */
export const managerTime = (): Promise<number> => hearing.then(managerNow);

/** The same, drawn anew every so many milliseconds. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(managerNow);
  useEffect(() => {
    const timer = setInterval(() => setNow(managerNow()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
