// Waiting for conditions, on machines that may be busy.

export const TIMEOUT = 60_000;

/** Polls until there is a result, and returns it. */
export async function until(what, check, timeout = TIMEOUT) {
  const end = performance.now() + timeout;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (performance.now() > end) throw new Error(`timeout while waiting until ${what}`);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}
