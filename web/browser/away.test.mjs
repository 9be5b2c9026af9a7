// The manager goes and comes back, and the page with it.

import { test } from "node:test";
import { scene } from "./scene.mjs";

const set = scene();

test("a manager that is stopped is missed, and found again without a reload", async () => {
  const visit = await set.visit();
  await visit.sees("launches jobs");
  const banner = visit.page.getByText("The manager is away");
  await set.lab.down();
  await banner.waitFor();
  await set.lab.up();
  await banner.waitFor({ state: "detached" });
  const job = await set.lab.submit("--gpus", "0", "--name", "afterwards", "--", "sleep", "1000");
  await visit.page
    .getByRole("table", { name: "Running jobs" })
    .getByRole("link", { name: `${job} afterwards` })
    .waitFor();
  await visit.end({ expected: /status of 503|ERR_INCOMPLETE_CHUNKED_ENCODING/ });
});
