// A GPU's page: its jobs now and earlier, and its utilisation.

import assert from "node:assert/strict";
import { test } from "node:test";
import { violations } from "./accessible.mjs";
import { scene } from "./setup.mjs";

const set = scene({ gpus: "1xA100-40GB" });

test("who is on it, its charts and their figures, for each span of time", async () => {
  const { manager } = set;
  const jobs = [];
  for (const [name, memory] of [
    ["first", "6GiB"],
    ["second", "4GiB"],
  ]) {
    jobs.push(await manager.submit("--name", name, "--mem", "8GiB", "--", ...manager.train({ memory, seconds: 100_000 })));
  }
  for (const job of jobs) await manager.reaches(job, "running");
  const session = await set.session();
  await session.page.getByRole("link", { name: "gpu0", exact: true }).first().click();
  const tenants = session.page.getByRole("table", { name: "Jobs on gpu0" });
  await tenants.getByRole("row", { name: /first.*6\.\d GiB/ }).waitFor();
  await tenants.getByRole("row", { name: /second.*4\.\d GiB/ }).waitFor();
  const charts = ["Memory", "Who was on it", "Utilisation", "Power"];
  for (const span of ["10 min", "1 h", "24 h", "7 d"]) {
    await session.press(span);
    await session.page.getByRole("button", { name: span, exact: true, pressed: true }).waitFor();
    await session.page
      .locator("figure svg")
      .nth(charts.length - 1)
      .waitFor();
    for (const label of await session.page.locator("figure svg").evaluateAll(all => all.map(svg => svg.getAttribute("aria-label")))) {
      assert.match(label, /\w+\. \S+/, "a chart says what it shows");
    }
  }
  await session.press("10 min");
  await session.page.getByText("Show as table").first().click();
  await session.page
    .getByRole("region", { name: /as a table/ })
    .getByRole("cell", { name: /GiB/ })
    .first()
    .waitFor();
  assert.deepEqual(await violations(session.page), []);
  await session.end();
});

test("jobs whose own colour is the same are told apart on it", async () => {
  const { manager } = set;
  const [first] = (await manager.get("/v1/gpus"))[0].tenants.map(({ attempt }) => attempt.job);
  // Colours repeat after eight numbers.
  await manager.submit("--hold", "--array", `1-${first + 5}`, "--", "true");
  const later = await manager.submit("--name", "later", "--mem", "3GiB", "--", ...manager.train({ memory: "2GiB", seconds: 100_000 }));
  assert.equal(later % 8, first % 8);
  await manager.reaches(later, "running");
  const session = await set.session();
  /** The different colours of all these, as the browser has them. */
  const colours = async (things, property) =>
    new Set(await things.evaluateAll((all, name) => all.map(one => getComputedStyle(one).getPropertyValue(name)), property));
  await session.page.getByText("later").nth(1).waitFor();
  assert.equal((await colours(session.page.locator(".gpu-card .swatch"), "background-color")).size, 3);
  await session.go("gpu/s0%2Fgpu0");
  await session.page.locator(".stay").nth(2).waitFor();
  assert.equal((await colours(session.page.locator(".stay rect:first-of-type"), "fill")).size, 3);
  assert.equal((await colours(session.page.locator("td .swatch"), "background-color")).size, 3);
  assert.equal((await colours(session.page.locator(".layer"), "fill")).size, 3);
  await manager.carma("cancel", `${later}`);
  await session.end();
});

test("an operator drains it after a question, and lets it take jobs again", async () => {
  const session = await set.session();
  await session.go("gpu/s0%2Fgpu0");
  const dialog = session.page.getByRole("dialog");
  await session.press("Drain");
  await session.press("Leave it as it is", dialog);
  assert.equal((await set.manager.get("/v1/gpus"))[0].drained, false);
  await session.press("Drain");
  await session.press("Drain gpu0", dialog);
  await session.page.locator(".job-head").getByText("drained", { exact: true }).waitFor();
  await session.press("Resume");
  await session.press("Resume gpu0", dialog);
  await session.page.getByRole("button", { name: "Drain", exact: true }).waitFor();
  await session.end();
});
