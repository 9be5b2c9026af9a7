// Jobs that failed: found in lists, and shown with their error.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scene } from "./setup.mjs";
import { until } from "./until.mjs";

const jobs = {};
const set = scene({}, async manager => {
  const run = (name, script) => manager.submit("--gpus", "0", "--name", name, "--", "sh", "-c", script);
  jobs.error = await run("with-error", "echo reading >&2; echo 'no such file: /data/index' >&2; exit 3");
  jobs.printed = await run("on-stdout", "echo 'the error is on stdout'; exit 4");
  jobs.fine = await run("fine", "echo done");
  jobs.stopped = await manager.submit("--hold", "--name", "stopped", "--", "true");
  await manager.carma("cancel", `${jobs.stopped}`);
  for (const job of Object.values(jobs)) await manager.reaches(job, "done");
});

const pressed = (session, name) => session.page.getByRole("button", { name, exact: true, pressed: true }).waitFor();

test("a failed job shows the last lines with its verdict, and its log opens on the stream with the error", async () => {
  const session = await set.session();
  await session.go(`job/${jobs.error}`);
  const verdict = session.page.getByRole("region", { name: /^Attempt 1 failed with exit code 3/ });
  await verdict.getByText("Last lines of stderr:").waitFor();
  await verdict.getByText("no such file: /data/index").last().waitFor();
  await pressed(session, "stderr");
  await session.page.getByRole("log").getByText("no such file: /data/index").waitFor();

  await session.go(`job/${jobs.printed}`);
  await session.page
    .getByRole("region", { name: /^Attempt 1 failed with exit code 4/ })
    .getByText("Last lines of stdout:")
    .waitFor();
  await pressed(session, "stdout");
  await session.page.getByRole("log").getByText("the error is on stdout").waitFor();
  // The user may choose the empty stream.
  await session.press("stderr");
  await session.sees("The job printed nothing to stderr.");

  await session.go(`job/${jobs.fine}`);
  await pressed(session, "stdout");
  await session.page.getByRole("log").getByText("done").waitFor();
  assert.equal(await session.page.getByRole("region", { name: /^Attempt 1/ }).count(), 0);
  await session.end();
});

test("failed jobs are listed by a link, and every outcome by a filter", async () => {
  const session = await set.session();
  await session.page.getByRole("link", { name: "failed jobs" }).click();
  const rows = session.page.getByRole("table").locator("tbody tr");
  await until("the two that failed", async () => (await rows.count()) === 2);
  await rows.filter({ hasText: "with-error" }).waitFor();
  for (const [outcome, name] of [
    ["succeeded", "fine"],
    ["cancelled", "stopped"],
  ]) {
    await session.page.getByLabel("Outcome").selectOption(outcome);
    await until(outcome, async () => (await rows.count()) === 1);
    await rows.filter({ hasText: name }).waitFor();
  }
  await session.page.getByLabel("Outcome").selectOption("out of memory");
  await session.sees("No job matches the filters.");
  await session.end();
});
