// The manager's clock. With emulated GPUs it may run faster, so the browser's clock is never compared with it.

import { useEffect, useState } from "preact/hooks";

let lastTime = Date.now();
let readAt = performance.now();
let speed = 1;

let setKnown: () => void = () => {};
const known = new Promise<void>(resolve => {
  setKnown = resolve;
});

/** Sets the clock to the manager's time. */
export function setClock(now: number, newSpeed = speed): void {
  lastTime = now;
  readAt = performance.now();
  speed = newSpeed;
  setKnown();
}

/** The manager's time now. */
export const managerNow = (): number => lastTime + (performance.now() - readAt) * speed;

/** The manager's time, once it is known. */
export const managerTime = (): Promise<number> => known.then(managerNow);

/** The manager's time, updated every so many milliseconds. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(managerNow);
  useEffect(() => {
    const timer = setInterval(() => setNow(managerNow()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
