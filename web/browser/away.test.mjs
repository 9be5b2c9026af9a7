// The page while the manager restarts.

import { test } from "node:test";
import { scene } from "./setup.mjs";

const set = scene();

test("a manager that is stopped is missed, and found again without a reload", async () => {
  const session = await set.session();
  await session.sees("active, up");
  const banner = session.page.getByText("The manager does not answer");
  await set.manager.down();
  await banner.waitFor();
  await set.manager.up();
  await banner.waitFor({ state: "detached" });
  const job = await set.manager.submit("--gpus", "0", "--name", "afterwards", "--", "sleep", "1000");
  await session.page
    .getByRole("table", { name: "Running jobs" })
    .getByRole("link", { name: `${job} afterwards` })
    .waitFor();
  await session.end({ expected: /status of 503|ERR_INCOMPLETE_CHUNKED_ENCODING/ });
});
