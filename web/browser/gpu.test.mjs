// A GPU's page: who is on it, who was, and how busy it was.

import assert from "node:assert/strict";
import { test } from "node:test";
import { violations } from "./accessible.mjs";
import { scene } from "./scene.mjs";

const set = scene({ gpus: "1xA100-40GB" });

test("who is on it, its charts and their figures, for each span of time", async () => {
  const { lab } = set;
  const jobs = [];
  for (const [name, memory] of [
    ["first", "6GiB"],
    ["second", "4GiB"],
  ]) {
    jobs.push(await lab.submit("--name", name, "--mem", "8GiB", "--", ...lab.train({ memory, seconds: 100_000 })));
  }
  for (const job of jobs) await lab.reaches(job, "running");
  const visit = await set.visit();
  await visit.page.getByRole("link", { name: "gpu0", exact: true }).first().click();
  const tenants = visit.page.getByRole("table", { name: "Jobs on gpu0" });
  await tenants.getByRole("row", { name: /first.*6\.\d GiB/ }).waitFor();
  await tenants.getByRole("row", { name: /second.*4\.\d GiB/ }).waitFor();
  const charts = ["Memory", "Who was on it", "Utilisation", "Power"];
  for (const span of ["10 min", "1 h", "24 h", "7 d"]) {
    await visit.press(span);
    await visit.page.getByRole("button", { name: span, exact: true, pressed: true }).waitFor();
    await visit.page
      .locator("figure svg")
      .nth(charts.length - 1)
      .waitFor();
    for (const label of await visit.page.locator("figure svg").evaluateAll(all => all.map(svg => svg.getAttribute("aria-label")))) {
      assert.match(label, /\w+\. \S+/, "a chart says what it shows");
    }
  }
  await visit.press("10 min");
  await visit.page.getByText("Show as table").first().click();
  await visit.page
    .getByRole("region", { name: /as a table/ })
    .getByRole("cell", { name: /GiB/ })
    .first()
    .waitFor();
  assert.deepEqual(await violations(visit.page), []);
  await visit.end();
});

test("jobs whose own colour is the same are told apart on it", async () => {
  const { lab } = set;
  const [first] = (await lab.ask("/v1/gpus"))[0].tenants.map(({ attempt }) => attempt.job);
  // Colours come round with every eighth number.
  await lab.submit("--hold", "--array", `1-${first + 5}`, "--", "true");
  const later = await lab.submit("--name", "later", "--mem", "3GiB", "--", ...lab.train({ memory: "2GiB", seconds: 100_000 }));
  assert.equal(later % 8, first % 8);
  await lab.reaches(later, "running");
  const visit = await set.visit();
  /** The different colours of all these, as the browser has them. */
  const colours = async (things, property) =>
    new Set(await things.evaluateAll((all, name) => all.map(one => getComputedStyle(one).getPropertyValue(name)), property));
  await visit.page.getByText("later").nth(1).waitFor();
  assert.equal((await colours(visit.page.locator(".gpu-card .swatch"), "background-color")).size, 3);
  await visit.go("gpu/s0%2Fgpu0");
  await visit.page.locator(".stay").nth(2).waitFor();
  assert.equal((await colours(visit.page.locator(".stay rect:first-of-type"), "fill")).size, 3);
  assert.equal((await colours(visit.page.locator("td .swatch"), "background-color")).size, 3);
  assert.equal((await colours(visit.page.locator(".layer"), "fill")).size, 3);
  await lab.carma("cancel", `${later}`);
  await visit.end();
});

test("an operator drains it after a question, and lets it take jobs again", async () => {
  const visit = await set.visit();
  await visit.go("gpu/s0%2Fgpu0");
  const dialog = visit.page.getByRole("dialog");
  await visit.press("Drain");
  await visit.press("Leave it as it is", dialog);
  assert.equal((await set.lab.ask("/v1/gpus"))[0].drained, false);
  await visit.press("Drain");
  await visit.press("Drain gpu0", dialog);
  await visit.page.locator(".job-head").getByText("drained", { exact: true }).waitFor();
  await visit.press("Resume");
  await visit.press("Resume gpu0", dialog);
  await visit.page.getByRole("button", { name: "Drain", exact: true }).waitFor();
  await visit.end();
});
