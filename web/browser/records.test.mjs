// What is kept: history, energy, what would have been, and wishes to be told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scene } from "./scene.mjs";
import { until } from "./until.mjs";

const set = scene({}, async lab => {
  const trained = await lab.submit("--name", "needle-in-hay", "--mem", "8GiB", "--", ...lab.train({ seconds: 120 }));
  const hay = await lab.submit("--gpus", "0", "--name", "hay", "--array", "1-20", "--", "true");
  const failed = await lab.submit("--gpus", "0", "--name", "broken", "--", "false");
  for (const job of [trained, hay, failed]) await lab.reaches(job, "done");
});

test("history is searched by what is typed, and by state", async () => {
  const visit = await set.visit();
  await visit.go("history");
  const rows = visit.page.getByRole("table").locator("tbody tr");
  await rows.nth(20).waitFor();
  await visit.page.getByLabel("Find").fill("needle");
  await until("one is found", async () => (await rows.count()) === 1);
  await rows.getByRole("link", { name: "needle-in-hay" }).waitFor();
  // An address with a search can be kept and sent.
  await until("the address says so", () => visit.page.url().includes("text=needle"));
  await visit.page.reload();
  await until("it is found again", async () => (await rows.count()) === 1);
  await visit.page.getByLabel("Find").fill("no such job");
  await visit.sees("No job is as asked for.");
  await visit.page.getByLabel("Find").fill("");
  await visit.page.getByLabel("State").selectOption("running");
  await visit.sees("No job is as asked for.");
  await visit.end();
});

test("new jobs take none from a history that was read further back", async () => {
  const submit = number => set.lab.submit("--hold", "--name", "pushed", "--array", `1-${number}`, "--", "true");
  await submit(150);
  const visit = await set.visit();
  await visit.go("history?text=pushed");
  const rows = visit.page.getByRole("table").locator("tbody tr");
  await until("a page is there", async () => (await rows.count()) === 100);
  await visit.press("Earlier jobs");
  await until("all are there", async () => (await rows.count()) === 150);
  await submit(20);
  await until("the new ones too", async () => (await rows.count()) === 170);
  await set.lab.carma("cancel", "--all", "--yes");
  await visit.end();
});

test("the queue is filtered and sorted", async () => {
  const jobs = [
    await set.lab.submit("--hold", "--name", "zebra", "--", "true"),
    await set.lab.submit("--hold", "--name", "aardvark", "--", "true"),
  ];
  const visit = await set.visit();
  await visit.go("queue");
  const rows = visit.page.getByRole("table").locator("tbody tr");
  await until("both wait", async () => (await rows.count()) === 2);
  await visit.press("Job");
  const first = async name => (await rows.first().innerText()).includes(name);
  await until("ascending", () => first("zebra"));
  await visit.press("Job");
  await until("descending", () => first("aardvark"));
  await visit.page.getByLabel("Find").fill("zeb");
  await until("one is found", async () => (await rows.count()) === 1);
  for (const job of jobs) await set.lab.carma("cancel", `${job}`);
  await visit.sees("No job runs or waits.");
  await visit.end();
});

test("energy is summed by user, day and job", async () => {
  const visit = await set.visit();
  await visit.go("energy");
  const table = visit.page.getByRole("table", { name: "Energy" });
  await table.getByRole("row", { name: /root.*Wh/ }).waitFor();
  await visit.press("by day");
  await table.getByRole("columnheader", { name: "Day" }).waitFor();
  await visit.press("by job");
  await table.getByRole("columnheader", { name: "Job" }).waitFor();
  assert.equal(await table.locator("tbody tr").count(), 1, "the one job that used a GPU");
  await table.getByRole("link", { name: "needle-in-hay" }).waitFor();
  await visit.end();
});

test("what if: the jobs are replayed by other policies", async () => {
  const visit = await set.visit();
  await visit.go("what-if");
  const hint = await visit.page.locator("#policies-hint").innerText();
  const listed = (await set.lab.carma("policies")).split("\n\n")[0].trim().split("\n");
  for (const line of listed) {
    const [name, meaning] = line.split(/ {2,}/);
    assert.ok(hint.includes(name), `${name} may be written`);
    await visit.page.locator(".policies dd").getByText(meaning.trim()).waitFor({ state: "attached" });
  }
  const asked = visit.page.waitForRequest(/v1\/what-if/);
  await visit.press("Replay");
  const since = new URL((await asked).url()).searchParams.get("since");
  assert.equal(Number(since) % 60_000, 0, "asked again within a minute it is the same question");
  const table = visit.page.getByRole("table", { name: /What became of the jobs/ });
  await table.getByRole("row", { name: /measured/ }).waitFor();
  await table.getByRole("row", { name: /as in force/ }).waitFor();
  assert.ok((await table.locator("tbody tr").count()) > 2, "other policies too");
  await visit.end();
});

test("wishes to be told are set, refused where they make no sense, and kept", async () => {
  const visit = await set.visit();
  await visit.go("notifications");
  await visit.sees("You have no notifications.");
  await visit.press("Add");
  await visit.page.getByLabel("How").selectOption("Command");
  await visit.page.getByRole("textbox", { name: "Command" }).fill("cat > told");
  await visit.page.getByLabel(/recovered|put back/).check();
  await visit.press("Save");
  await visit.sees("Saved.");
  await visit.page.reload();
  assert.equal(await visit.page.getByRole("textbox", { name: "Command" }).inputValue(), "cat > told");
  assert.deepEqual((await set.lab.ask("/v1/notifications"))[0].on.sort(), ["done", "failed", "recovered"]);
  await visit.press("Remove notification 1");
  await visit.press("Save");
  await visit.sees("Saved.");
  assert.deepEqual(await set.lab.ask("/v1/notifications"), []);
  await visit.end();
});
