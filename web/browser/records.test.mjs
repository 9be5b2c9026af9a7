// History, energy, what-if and notifications.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scene } from "./setup.mjs";
import { until } from "./until.mjs";

const set = scene({}, async manager => {
  const trained = await manager.submit("--name", "needle-in-hay", "--mem", "8GiB", "--", ...manager.train({ seconds: 120 }));
  const hay = await manager.submit("--gpus", "0", "--name", "hay", "--array", "1-20", "--", "true");
  const failed = await manager.submit("--gpus", "0", "--name", "broken", "--", "false");
  for (const job of [trained, hay, failed]) await manager.reaches(job, "done");
});

test("history is searched by what is typed, and by state", async () => {
  const session = await set.session();
  await session.go("history?each=yes");
  const rows = session.page.getByRole("table").locator("tbody tr");
  await rows.nth(20).waitFor();
  await session.page.getByLabel("Find").fill("needle");
  await until("one is found", async () => (await rows.count()) === 1);
  await rows.getByRole("link", { name: "needle-in-hay" }).waitFor();
  // The address contains the search.
  await until("the address says so", () => session.page.url().includes("text=needle"));
  await session.page.reload();
  await until("it is found again", async () => (await rows.count()) === 1);
  await session.page.getByLabel("Find").fill("no such job");
  await session.sees("No job matches the filters.");
  await session.page.getByLabel("Find").fill("");
  await session.page.getByLabel("State").selectOption("running");
  await session.sees("No job matches the filters.");
  await session.end();
});

test("new jobs take none from a history that was read further back", async () => {
  const submit = number => set.manager.submit("--hold", "--name", "pushed", "--array", `1-${number}`, "--", "true");
  await submit(150);
  const session = await set.session();
  await session.go("history?text=pushed&each=yes");
  const rows = session.page.getByRole("table").locator("tbody tr");
  await until("a page is there", async () => (await rows.count()) === 100);
  await session.press("Earlier jobs");
  await until("all are there", async () => (await rows.count()) === 150);
  await submit(20);
  await until("the new ones too", async () => (await rows.count()) === 170);
  await set.manager.carma("cancel", "--all", "--yes");
  await session.end();
});

test("the queue is filtered and sorted", async () => {
  const jobs = [
    await set.manager.submit("--hold", "--name", "zebra", "--", "true"),
    await set.manager.submit("--hold", "--name", "aardvark", "--", "true"),
  ];
  const session = await set.session();
  await session.go("queue");
  const rows = session.page.getByRole("table").locator("tbody tr");
  await until("both wait", async () => (await rows.count()) === 2);
  await session.press("Job");
  const first = async name => (await rows.first().innerText()).includes(name);
  await until("ascending", () => first("zebra"));
  await session.press("Job");
  await until("descending", () => first("aardvark"));
  await session.page.getByLabel("Find").fill("zeb");
  await until("one is found", async () => (await rows.count()) === 1);
  for (const job of jobs) await set.manager.carma("cancel", `${job}`);
  await session.sees("No job is running or waiting.");
  await session.end();
});

test("energy is summed by user, day and job", async () => {
  const session = await set.session();
  await session.go("energy");
  const table = session.page.getByRole("table", { name: "Energy" });
  await table.getByRole("row", { name: /root.*Wh/ }).waitFor();
  await session.press("by day");
  await table.getByRole("columnheader", { name: "Day" }).waitFor();
  await session.press("by job");
  await table.getByRole("columnheader", { name: "Job" }).waitFor();
  assert.equal(await table.locator("tbody tr").count(), 1, "the one job that used a GPU");
  await table.getByRole("link", { name: "needle-in-hay" }).waitFor();
  await session.end();
});

test("what if: the jobs are replayed by other policies", async () => {
  const session = await set.session();
  await session.go("what-if");
  const hint = await session.page.locator("#policies-hint").innerText();
  const listed = (await set.manager.carma("policies")).split("\n\n")[0].trim().split("\n");
  for (const line of listed) {
    const [name, meaning] = line.split(/ {2,}/);
    assert.ok(hint.includes(name), `${name} may be written`);
    await session.page.locator(".policies dd").getByText(meaning.trim()).waitFor({ state: "attached" });
  }
  const asked = session.page.waitForRequest(/v1\/what-if/);
  await session.press("Replay");
  const since = new URL((await asked).url()).searchParams.get("since");
  assert.equal(Number(since) % 60_000, 0, "asked again within a minute it is the same question");
  const table = session.page.getByRole("table", { name: /Measured and simulated results/ });
  await table.getByRole("row", { name: /measured/ }).waitFor();
  await table.getByRole("row", { name: /current settings/ }).waitFor();
  assert.ok((await table.locator("tbody tr").count()) > 2, "other policies too");
  await session.end();
});

test("notifications are set, kept and removed", async () => {
  const session = await set.session();
  await session.go("notifications");
  await session.sees("You have no notifications.");
  await session.press("Add");
  await session.page.getByLabel("Channel").selectOption("Command");
  await session.page.getByRole("textbox", { name: "Command" }).fill("cat > told");
  await session.page.getByLabel(/requeued/).check();
  await session.press("Save");
  await session.sees("Saved.");
  await session.page.reload();
  assert.equal(await session.page.getByRole("textbox", { name: "Command" }).inputValue(), "cat > told");
  assert.deepEqual((await set.manager.get("/v1/notifications"))[0].on.sort(), ["done", "failed", "recovered"]);
  await session.press("Remove notification 1");
  await session.press("Save");
  await session.sees("Saved.");
  assert.deepEqual(await set.manager.get("/v1/notifications"), []);
  await session.end();
});
