// Jobs of other users are visible and cannot be changed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Session } from "./session.mjs";
import { scene } from "./setup.mjs";
import { cannotSwitchUser, OTHER_USER } from "./test_manager.mjs";

const set = scene();

const READ_ONLY = "a job of another user is read-only";
test(READ_ONLY, { skip: await cannotSwitchUser(READ_ONLY) }, async () => {
  const roots = await set.manager.submit("--gpus", "0", "--name", "roots", "--", "sh", "-c", "echo confidential; sleep 100000");
  const own = Number(await set.manager.carmaAs(OTHER_USER, "submit", "--quiet", "--gpus", "0", "--name", "own", "--", "sleep", "100000"));
  await Promise.all([set.manager.reaches(roots, "running"), set.manager.reaches(own, "running")]);
  const session = await Session.open(set.browser, await set.manager.web(OTHER_USER));
  await session.go(`job/${roots}`);
  await session.sees("Only root and operators can change this job.");
  await session.sees("Only root and operators can read the log.");
  for (const name of ["Cancel", "Requeue", "Priority"]) assert.equal(await session.page.getByRole("button", { name }).count(), 0);
  assert.equal(await session.page.getByText("confidential").count(), 0);

  await session.go("gpu/s0%2Fgpu0");
  await session.heading("gpu0").waitFor();
  assert.equal(await session.page.getByRole("button", { name: "Drain" }).count(), 0);

  await session.go(`job/${own}`);
  await session.press("Cancel");
  await session.press(`Cancel job ${own}`, session.page.getByRole("dialog"));
  await session.page.locator(".job-head").getByText("cancelled", { exact: true }).waitFor();
  await session.end();
});
