// Waiting for what comes in its own time, on machines that may be busy.

export const PATIENCE = 60_000;

/** Looks again and again until there is something, and gives it. */
export async function until(what, look, patience = PATIENCE) {
  const end = performance.now() + patience;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}
