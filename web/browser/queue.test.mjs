// The queue: its order, memory, times and progress, and arrays as one row.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scene } from "./setup.mjs";
import { until } from "./until.mjs";

const jobs = {};
const set = scene({ gpus: "1xA100-40GB" }, async manager => {
  const train = manager.train({ memory: "6GiB", seconds: 100_000 }).join(" ");
  const script = `echo 0.01 > "$CARMA_PROGRESS"; exec ${train}`;
  jobs.running = await manager.submit("--name", "runs", "--exclusive", "--mem", "8GiB", "--", "sh", "-c", script);
  await manager.reaches(jobs.running, "running");
  for (const [name, priority] of [
    ["low", "-5"],
    ["usual", "0"],
    ["urgent", "7"],
  ])
    jobs[name] = await manager.submit("--name", name, "--priority", priority, "--mem", "8GiB", "--", "true");
  jobs.array = await manager.submit("--name", "sweep", "--mem", "8GiB", "--priority", "-9", "--array", "1-30", "--", "true");
});

const table = (session, name) => session.page.getByRole("table", { name });

test("waiting jobs are in the order in which they are considered: the next one is first", async () => {
  const session = await set.session();
  for (const place of ["", "queue"]) {
    await session.go(place);
    const rows = table(session, "Waiting jobs").locator("tbody tr");
    await rows.nth(3).waitFor();
    const texts = await rows.allInnerTexts();
    assert.deepEqual(
      texts.map(text => /urgent|usual|low|sweep/.exec(text)?.[0]),
      ["urgent", "usual", "low", "sweep"],
    );
    assert.deepEqual(
      texts.map(text => /next in/.test(text)),
      [true, false, false, false],
    );
  }
  await session.end();
});

test("reserved and used memory are two columns, run time and total time too, with the time left", async () => {
  const session = await set.session();
  await session.go("queue");
  const running = table(session, "Running jobs");
  const cell = name => running.locator(`td[data-label="${name}"]`);
  await until("its memory is seen", async () => /^6\.\d GiB$/.test(await cell("Used").innerText()));
  assert.equal(await cell("Reserved").innerText(), "40.0 GiB");
  await until("its progress is known", async () => /%/.test(await cell("Progress").innerText()));
  // So little is done that the manager may not predict its end yet.
  assert.match(await cell("Time left").innerText(), /^(–|≈ \d+ (min|h|d))/);
  assert.match(await cell("Run time").innerText(), /^\d+ \w+/);
  await session.go(`job/${jobs.running}`);
  await session.page.locator(".job-head").getByRole("progressbar").waitFor();
  for (const name of ["Run time", "Total time"]) await session.page.locator(".fact dt").getByText(name, { exact: true }).waitFor();
  await session.page.locator("figure", { hasText: "Memory of this job" }).locator("path.curve").first().waitFor({ state: "attached" });
  await session.page.locator("figure", { hasText: "by this job (its part)" }).locator("path.curve").first().waitFor({ state: "attached" });
  await session.end();
});

test("an array is one row with its states, which leads to its jobs", async () => {
  const session = await set.session();
  await session.go("queue");
  const row = table(session, "Waiting jobs").locator("tbody tr", { hasText: "sweep" });
  await row.getByText("30 waiting").waitFor();
  await set.manager.carma("cancel", `${jobs.array}_2`);
  await row.getByText("29 waiting").waitFor();
  await row.getByText("1 cancelled").waitFor();
  await row.getByRole("link", { name: `Array ${jobs.array} sweep` }).click();
  await session.heading(`Array ${jobs.array} sweep`).waitFor();
  const rows = session.page.getByRole("table").locator("tbody tr");
  await until("all of its jobs", async () => (await rows.count()) === 30);
  await session.page.getByLabel("Outcome").selectOption("cancelled");
  await until("the cancelled one", async () => (await rows.count()) === 1);
  await session.end();
});
