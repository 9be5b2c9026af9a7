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
  const charts = ["Memory", "Jobs", "Utilisation", "Power"];
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

test("a job has one colour on all pages and after a reload, and jobs on GPUs differ", async () => {
  const { manager } = set;
  const later = await manager.submit("--name", "later", "--mem", "3GiB", "--", ...manager.train({ memory: "2GiB", seconds: 100_000 }));
  await manager.reaches(later, "running");
  const session = await set.session();
  const property = (things, name) => things.evaluateAll((all, of) => all.map(one => getComputedStyle(one).getPropertyValue(of)), name);
  const swatch = within => property(session.page.locator(`${within} .swatch`), "background-color");
  await session.page.locator(".gpu-card").getByText("later").waitFor();
  const given = await swatch(".gpu-card");
  assert.equal(new Set(given).size, 3);
  const [colour] = given.slice(-1);
  await session.page.reload();
  await session.page.locator(".gpu-card").getByText("later").waitFor();
  assert.deepEqual(await swatch(".gpu-card"), given);
  await session.go("gpu/s0%2Fgpu0");
  await session.page.locator(".stay").nth(2).waitFor();
  assert.deepEqual(new Set(await property(session.page.locator(".stay rect:first-of-type"), "fill")), new Set(given));
  const layers = await property(session.page.locator(".layer"), "fill");
  assert.ok(given.every(one => layers.includes(one)));
  for (const place of ["queue", "history"]) {
    await session.go(place);
    const row = session.page.getByRole("table").locator("tbody tr", { hasText: "later" });
    await row.waitFor();
    assert.deepEqual(await property(row.locator(".swatch"), "background-color"), [colour], place);
  }
  await session.go(`job/${later}`);
  await session.heading(/later/).waitFor();
  assert.deepEqual(await swatch("h1"), [colour]);
  await manager.carma("cancel", `${later}`);
  await session.end();
});

test("on a GPU's card nothing wraps and nothing is cut", async () => {
  const { manager } = set;
  await manager.carma("drain", "gpu0");
  for (const width of [1280, 390]) {
    const session = await set.session({ screen: { width, height: 800 } });
    const badge = session.page.locator(".gpu-card").getByText("drained", { exact: true });
    await badge.waitFor();
    assert.ok(await badge.evaluate(box => box.scrollWidth <= box.clientWidth), "the state is seen whole");
    const lines = await session.page
      .locator(".gpu-activity .value")
      .first()
      .evaluate(value => {
        const height = text => {
          const copy = value.cloneNode();
          copy.textContent = text;
          value.replaceWith(copy);
          const { height: pixels } = copy.getBoundingClientRect();
          copy.replaceWith(value);
          return pixels;
        };
        return height("100 %") / height("1");
      });
    assert.equal(lines, 1, "100 % is one line");
    await session.end();
  }
  await manager.carma("resume", "gpu0");
});

test("an operator drains it after a question, and lets it take jobs again", async () => {
  const session = await set.session();
  await session.go("gpu/s0%2Fgpu0");
  const dialog = session.page.getByRole("dialog");
  await session.press("Drain");
  await session.press("Go back", dialog);
  assert.equal((await set.manager.get("/v1/gpus"))[0].drained, false);
  await session.press("Drain");
  await session.press("Drain gpu0", dialog);
  await session.page.locator(".job-head").getByText("drained", { exact: true }).waitFor();
  await session.press("Resume");
  await session.press("Resume gpu0", dialog);
  await session.page.getByRole("button", { name: "Drain", exact: true }).waitFor();
  await session.end();
});
