// Users: jobs, GPU-hours, energy, quota, fair share.

import { test } from "node:test";
import { scene } from "./setup.mjs";

const set = scene({ configuration: "[queue]\nfair_share = true\n[[quotas.users]]\nuser = 'root'\ngpus = 6\n" }, async manager => {
  const trained = await manager.submit("--name", "trained", "--mem", "8GiB", "--", ...manager.train({ seconds: 600 }));
  const failed = await manager.submit("--gpus", "0", "--name", "broken", "--", "false");
  await manager.submit("--hold", "--name", "later", "--", "true");
  for (const job of [trained, failed]) await manager.reaches(job, "done");
});

test("a user's page has jobs by state, GPU-hours, energy, quota, fair share and the jobs themselves", async () => {
  const session = await set.session();
  await session.page.getByRole("link", { name: "Users", exact: true }).click();
  const row = session.page.getByRole("table", { name: "Users" }).locator("tbody tr", { hasText: "root" });
  await row.getByText(/0\.1\d|0\.2\d/).waitFor();
  await row.getByRole("link", { name: "root" }).click();
  await session.heading("User root").waitFor();
  const usage = session.page.getByRole("region", { name: "Usage" });
  for (const words of ["1 held", "1 succeeded", "1 failed", /^0\.[12]\d$/, /Wh$/]) await usage.getByText(words).first().waitFor();
  await session.page.getByRole("region", { name: "Quota" }).getByText("0 of 6").waitFor();
  await session.page.getByRole("region", { name: "Fair share" }).getByText("GPUs in use now").waitFor();
  await session.page.getByRole("table", { name: "Held jobs" }).getByText("later").waitFor();
  const jobs = session.page.getByRole("table", { name: "Jobs, the latest first" });
  await jobs.getByRole("row", { name: /trained.*succeeded.*GiB.*Wh/ }).waitFor();
  await session.end();
});
