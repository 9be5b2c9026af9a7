// What people do with their jobs, from submitting to the end.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { PROGRAM } from "./lab.mjs";
import { scene } from "./scene.mjs";
import { until } from "./until.mjs";

const set = scene();

const FOREVER = ["--gpus", "0", "--", "sleep", "100000"];
/** The state of the job whose page is shown. */
const state = (visit, words) => visit.page.locator(".job-head").getByText(words, { exact: true }).waitFor();
const dialog = visit => visit.page.getByRole("dialog");

/** Presses a button that asks first, and says yes. */
async function doAfterQuestion(visit, name, confirm) {
  await visit.press(name);
  await visit.press(confirm, dialog(visit));
  await dialog(visit).waitFor({ state: "detached" });
}

test("a job is submitted by the form, and watched to its end without a reload", async () => {
  const visit = await set.visit();
  await visit.page.evaluate("globalThis.sameDocument = true");
  await visit.page.getByRole("link", { name: "Submit", exact: true }).click();
  // A page knows nothing of anybody's PATH.
  await visit.page.getByLabel("Command").fill([PROGRAM, ...set.lab.train({ seconds: 240 }).slice(1)].join(" "));
  await visit.page.getByLabel("Directory").fill(join(set.lab.folder, "square"));
  await visit.page.getByLabel("Name").fill("by-the-form");
  await visit.page.getByLabel("Memory on each GPU").fill("8GiB");
  await visit.press("What would become of it?");
  await visit.sees(/It would start at once on/);
  await visit.press("Submit");
  await visit.page.getByRole("link", { name: /^job \d+$/ }).click();
  await visit.heading(/^Job \d+ by-the-form$/).waitFor();
  await state(visit, "running");
  await visit.page.getByRole("log").getByText(/epoch/i).first().waitFor();
  await state(visit, "succeeded");
  await visit.sees("Ended");
  assert.ok(await visit.page.evaluate("globalThis.sameDocument"));
  await visit.end();
});

test("a form that was filled in wrongly is told so, and nothing is submitted", async () => {
  const visit = await set.visit();
  await visit.go("submit");
  const before = (await set.lab.ask("/v1/history")).length;
  await visit.page.getByLabel("Command").fill("true");
  await visit.page.getByLabel("Directory").fill("not/from/the/root");
  await visit.page.getByLabel("Memory on each GPU").fill("a lot");
  await visit.press("Submit");
  await visit.sees("a lot is no memory");
  await visit.page.getByLabel("Memory on each GPU").fill("1GiB");
  await visit.press("Submit");
  await visit.page.locator(".notice.bad").getByText("must be an absolute path").waitFor();
  assert.equal((await set.lab.ask("/v1/history")).length, before);
  await visit.end({ expected: /status of 4\d\d/ });
});

test("a job is cancelled after a question, and goes on when the question is dismissed", async () => {
  const job = await set.lab.submit(...FOREVER);
  await set.lab.reaches(job, "running");
  const visit = await set.visit();
  await visit.go(`job/${job}`);
  await state(visit, "running");
  await visit.page
    .getByRole("table", { name: "Attempts" })
    .getByText(/^\d+ \w+.* so far$/)
    .waitFor();
  await visit.press("Cancel");
  await visit.press("Leave it as it is", dialog(visit));
  await dialog(visit).waitFor({ state: "detached" });
  await visit.press("Cancel");
  await visit.page.keyboard.press("Escape");
  await dialog(visit).waitFor({ state: "detached" });
  assert.equal((await set.lab.ask(`/v1/jobs/${job}`)).state.state, "running");

  await doAfterQuestion(visit, "Cancel", `Cancel job ${job}`);
  await state(visit, "cancelled");
  assert.equal(await visit.page.getByRole("button", { name: "Cancel" }).count(), 0);
  await visit.end();
});

test("a job is held, released, given a priority and put back", async () => {
  const job = await set.lab.submit("--begin", "now+1hour", ...FOREVER);
  const visit = await set.visit();
  await visit.go(`job/${job}`);
  await state(visit, "queued");
  await visit.heading("Why it waits").waitFor();
  await doAfterQuestion(visit, "Hold", `Hold job ${job}`);
  await state(visit, "held");
  await doAfterQuestion(visit, "Release", `Release job ${job}`);
  await state(visit, "queued");

  await visit.press("Priority");
  await dialog(visit).getByLabel("Priority", { exact: true }).fill("7");
  await visit.press("Set priority", dialog(visit));
  await until("the priority is set", async () => (await set.lab.ask(`/v1/jobs/${job}`)).request.schedule.priority === 7);

  const running = await set.lab.submit(...FOREVER);
  await set.lab.reaches(running, "running");
  await visit.go(`job/${running}`);
  await state(visit, "running");
  await doAfterQuestion(visit, "Requeue", `Requeue job ${running}`);
  await visit.page.getByRole("table", { name: "Attempts" }).getByRole("row").nth(2).waitFor();
  await state(visit, "running");
  await visit.end();
});

test("what is done to the first of an array is done to it alone", async () => {
  const first = await set.lab.submit("--hold", "--name", "array", "--array", "1-2", "--", "true");
  const visit = await set.visit();
  await visit.go(`job/${first}`);
  await visit.heading(`Job ${first}_1 array`).waitFor();
  await doAfterQuestion(visit, "Cancel", `Cancel job ${first}_1`);
  await state(visit, "cancelled");
  assert.equal((await set.lab.ask(`/v1/jobs/${first + 1}`)).phase, "held");
  // It has the same name wherever it is listed.
  for (const place of ["history?text=array", ""]) {
    await visit.go(place);
    await visit.page
      .getByRole("link", { name: `${first}_1 array`, exact: true })
      .first()
      .waitFor();
  }
  await set.lab.carma("cancel", `${first + 1}`);
  await visit.end();
});

test("names and logs are text, whatever is in them", async () => {
  const name = "<img src=x onerror=alert(1)>";
  const script = String.raw`printf '<script>alert(2)</script>\n\033[31mred\033[0m <b>bold</b>\n'; sleep 100000`;
  const job = await set.lab.submit("--gpus", "0", "--name", name, "--", "sh", "-c", script);
  await set.lab.reaches(job, "running");
  const visit = await set.visit();
  await visit.page.getByRole("table", { name: "Running jobs" }).getByText(name).waitFor();
  await visit.go("queue");
  await visit.page.getByRole("table").getByText(name).waitFor();
  await visit.go("history");
  await visit.page.getByRole("table").getByText(name).waitFor();
  await visit.go(`job/${job}`);
  await visit.heading(name).waitFor();
  const log = visit.page.getByRole("log");
  await log.getByText("red <b>bold</b>").waitFor();
  assert.match(await log.innerText(), /^<script>alert\(2\)<\/script>\nred <b>bold<\/b>/);
  assert.equal(await visit.page.locator("main img, main script, main b").count(), 0);
  await visit.end();
});
