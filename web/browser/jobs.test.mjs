// Actions on jobs, from submission to the end.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { violations } from "./accessible.mjs";
import { scene } from "./setup.mjs";
import { PROGRAM } from "./test_manager.mjs";
import { until } from "./until.mjs";

const set = scene();

const FOREVER = ["--gpus", "0", "--", "sleep", "100000"];
/** The state of the job whose page is shown. */
const state = (session, words) => session.page.locator(".job-head").getByText(words, { exact: true }).waitFor();
const dialog = session => session.page.getByRole("dialog");

/** Presses a button, and confirms its dialog. */
async function confirmAction(session, name, confirm) {
  await session.press(name);
  await session.press(confirm, dialog(session));
  await dialog(session).waitFor({ state: "detached" });
}

test("a job is submitted by the form, and watched to its end without a reload", async () => {
  const session = await set.session();
  await session.page.evaluate("globalThis.sameDocument = true");
  await session.page.getByRole("link", { name: "Submit", exact: true }).click();
  // A page does not know the user's PATH.
  await session.page.getByLabel("Command").fill([PROGRAM, ...set.manager.train({ seconds: 240 }).slice(1)].join(" "));
  await session.page.getByLabel("Directory").fill(join(set.manager.folder, "square"));
  await session.page.getByLabel("Name").fill("by-the-form");
  await session.page.getByLabel("Memory per GPU").fill("8GiB");
  await session.press("Preview placement");
  await session.sees(/The job would start now on/);
  await session.press("Submit");
  await session.page.getByRole("link", { name: /^job \d+$/ }).click();
  await session.heading(/^Job \d+ by-the-form$/).waitFor();
  await state(session, "running");
  await session.page.getByRole("log").getByText(/epoch/i).first().waitFor();
  await state(session, "succeeded");
  await session.sees("Ended");
  assert.ok(await session.page.evaluate("globalThis.sameDocument"));
  await session.end();
});

test("each field of the form says what is wrong with it, and nothing is submitted", async () => {
  const session = await set.session();
  await session.go("submit");
  const before = (await set.manager.get("/v1/history")).length;
  const problem = async (label, words) => {
    await session.page
      .locator(".field", { has: session.page.getByLabel(label) })
      .getByText(words)
      .waitFor();
    assert.equal(await session.page.getByLabel(label).getAttribute("aria-invalid"), "true");
  };
  await session.page.getByLabel("Command").fill("true");
  await session.page.getByLabel("Memory per GPU").fill("a lot");
  await session.press("Submit");
  await problem("Directory", "Enter the directory in which the job runs");
  await problem("Memory per GPU", "Enter a size with its unit");
  assert.ok(
    await session.page.getByLabel("Directory").evaluate(field => field === document.activeElement),
    "the first wrong field has the focus",
  );
  assert.deepEqual(await violations(session.page), []);
  await session.page.getByLabel("Memory per GPU").fill("1GiB");
  await session.page.getByLabel("Directory").fill("not/from/the/root");
  await session.press("Preview placement");
  await problem("Directory", "Enter the full path, which begins with /.");
  assert.equal((await set.manager.get("/v1/history")).length, before);
  await session.end();
});

test("a job is cancelled after a question, and goes on when the question is dismissed", async () => {
  const job = await set.manager.submit(...FOREVER);
  await set.manager.reaches(job, "running");
  const session = await set.session();
  await session.go(`job/${job}`);
  await state(session, "running");
  await session.page
    .getByRole("table", { name: "Attempts" })
    .getByText(/^\d+ \w+.* so far$/)
    .waitFor();
  await session.press("Cancel");
  await session.press("Go back", dialog(session));
  await dialog(session).waitFor({ state: "detached" });
  await session.press("Cancel");
  await session.page.keyboard.press("Escape");
  await dialog(session).waitFor({ state: "detached" });
  assert.equal((await set.manager.get(`/v1/jobs/${job}`)).state.state, "running");

  await confirmAction(session, "Cancel", `Cancel job ${job}`);
  await state(session, "cancelled");
  assert.equal(await session.page.getByRole("button", { name: "Cancel" }).count(), 0);
  await session.end();
});

test("a job is held, released, given a priority and put back", async () => {
  const job = await set.manager.submit("--begin", "now+1hour", ...FOREVER);
  const session = await set.session();
  await session.go(`job/${job}`);
  await state(session, "queued");
  await session.heading("Why it waits").waitFor();
  await confirmAction(session, "Hold", `Hold job ${job}`);
  await state(session, "held");
  await confirmAction(session, "Release", `Release job ${job}`);
  await state(session, "queued");

  await session.press("Priority");
  await dialog(session).getByLabel("Priority", { exact: true }).fill("7");
  await session.press("Set priority", dialog(session));
  await until("the priority is set", async () => (await set.manager.get(`/v1/jobs/${job}`)).request.schedule.priority === 7);

  const running = await set.manager.submit(...FOREVER);
  await set.manager.reaches(running, "running");
  await session.go(`job/${running}`);
  await state(session, "running");
  await confirmAction(session, "Requeue", `Requeue job ${running}`);
  await session.page.getByRole("table", { name: "Attempts" }).getByRole("row").nth(2).waitFor();
  await state(session, "running");
  await session.end();
});

test("an action on the first job of an array changes only that job", async () => {
  const first = await set.manager.submit("--hold", "--name", "array", "--array", "1-2", "--", "true");
  const session = await set.session();
  await session.go(`job/${first}`);
  await session.heading(`Job ${first}_1 array`).waitFor();
  await confirmAction(session, "Cancel", `Cancel job ${first}_1`);
  await state(session, "cancelled");
  assert.equal((await set.manager.get(`/v1/jobs/${first + 1}`)).phase, "held");
  // It has the same name in all lists.
  for (const place of ["history?text=array&each=yes", ""]) {
    await session.go(place);
    await session.page
      .getByRole("link", { name: `${first}_1 array`, exact: true })
      .first()
      .waitFor();
  }
  await set.manager.carma("cancel", `${first + 1}`);
  await session.end();
});

test("a finished job is submitted again after a question", async context => {
  const { manager } = set;
  const { paths } = await manager.get("/v1/openapi.json");
  if (!paths["/v1/jobs/{job}/resubmit"]) return context.skip("this manager cannot resubmit");
  const job = await manager.submit("--gpus", "0", "--name", "twice", "--", "true");
  await manager.reaches(job, "done");
  const session = await set.session();
  await session.go(`job/${job}`);
  await session.press("Resubmit");
  await session.press(`Resubmit job ${job}`, dialog(session));
  await session.heading(`Job ${job + 1} twice`).waitFor();
  await session.end();
});

test("names and logs are text, whatever is in them", async () => {
  const name = "<img src=x onerror=alert(1)>";
  const script = String.raw`printf '<script>alert(2)</script>\n\033[31mred\033[0m <b>bold</b>\n'; sleep 100000`;
  const job = await set.manager.submit("--gpus", "0", "--name", name, "--", "sh", "-c", script);
  await set.manager.reaches(job, "running");
  const session = await set.session();
  await session.page.getByRole("table", { name: "Running jobs" }).getByText(name).waitFor();
  await session.go("queue");
  await session.page.getByRole("table").getByText(name).waitFor();
  await session.go("history");
  await session.page.getByRole("table").getByText(name).waitFor();
  await session.go(`job/${job}`);
  await session.heading(name).waitFor();
  const log = session.page.getByRole("log");
  await log.getByText("red <b>bold</b>").waitFor();
  assert.match(await log.innerText(), /^<script>alert\(2\)<\/script>\nred <b>bold<\/b>/);
  assert.equal(await session.page.locator("main img, main script, main b").count(), 0);
  await session.end();
});
