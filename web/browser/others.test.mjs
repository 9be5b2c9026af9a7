// What belongs to somebody else can be seen, and not touched.

import assert from "node:assert/strict";
import { test } from "node:test";
import { cannotBecomeOthers, NOBODY } from "./lab.mjs";
import { scene } from "./scene.mjs";
import { Visit } from "./visit.mjs";

const set = scene();

const READ_ONLY = "a job of another user is read-only";
test(READ_ONLY, { skip: await cannotBecomeOthers(READ_ONLY) }, async () => {
  const roots = await set.lab.submit("--gpus", "0", "--name", "roots", "--", "sh", "-c", "echo confidential; sleep 100000");
  const own = Number(await set.lab.carmaAs(NOBODY, "submit", "--quiet", "--gpus", "0", "--name", "own", "--", "sleep", "100000"));
  await Promise.all([set.lab.reaches(roots, "running"), set.lab.reaches(own, "running")]);
  const visit = await Visit.open(set.browser, await set.lab.web(NOBODY));
  await visit.go(`job/${roots}`);
  await visit.sees("Only root and operators act on it.");
  await visit.sees("Its log is for root and operators.");
  for (const name of ["Cancel", "Requeue", "Priority"]) assert.equal(await visit.page.getByRole("button", { name }).count(), 0);
  assert.equal(await visit.page.getByText("confidential").count(), 0);

  await visit.go("gpu/s0%2Fgpu0");
  await visit.heading("gpu0").waitFor();
  assert.equal(await visit.page.getByRole("button", { name: "Drain" }).count(), 0);

  await visit.go(`job/${own}`);
  await visit.press("Cancel");
  await visit.press(`Cancel job ${own}`, visit.page.getByRole("dialog"));
  await visit.page.locator(".job-head").getByText("cancelled", { exact: true }).waitFor();
  await visit.end();
});
