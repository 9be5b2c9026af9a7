// Records a skipped test in the file that CARMA_SKIPPED names, as all other tests do (crates/carma-testing).

import { appendFileSync } from "node:fs";

/** Records the reason and returns it. Throws under CI unless a CI machine may have the same reason. */
export function skipped(test, reason, inCi) {
  const { CI, CARMA_SKIPPED } = process.env;
  if (CI && CI !== "0" && CI !== "false" && !inCi) throw new Error(`${test} must run under CI: ${reason}`);
  if (CARMA_SKIPPED) appendFileSync(CARMA_SKIPPED, `${test}: ${reason}\n`);
  return reason;
}
