// Whatever jobs are called and however wide the screen is, no column of a table lies beyond its edge.

import assert from "node:assert/strict";
import { test } from "node:test";
import { arrive } from "./places.mjs";
import { scene } from "./scene.mjs";

const WIDTHS = [1280, 1024, 768, 390];
const LONG = "a-really-long-name-that-nobody-would-abbreviate-in-reality-so-it-stays";

const set = scene({}, async lab => {
  await lab.submit("--name", LONG, "--mem", "8GiB", "--", ...lab.train({ memory: "6GiB", seconds: 100_000 }));
  await lab.submit("--name", LONG, "--gpus", "8", "--mem", "30GiB", "--", "true");
  const failed = await lab.submit("--name", LONG, "--gpus", "0", "--", "/a/program/that/is/not/there");
  await lab.reaches(failed, "done");
});

/** Cells of a table that go beyond its box, and names that are cut off and cannot be read elsewhere; runs in the browser. */
function cut() {
  const boxes = [...document.querySelectorAll("main .table-box")];
  const beyond = boxes.flatMap(box =>
    [...box.querySelectorAll("td")].filter(cell => cell.getBoundingClientRect().right > box.getBoundingClientRect().right + 1),
  );
  const lost = [...document.querySelectorAll("main .job-name")].filter(name => name.getAttribute("title") !== name.textContent);
  return [...beyond, ...lost].map(element => element.outerHTML.slice(0, 200));
}

for (const width of WIDTHS) {
  test(`at ${width} pixels all of the queue is seen, with why a job waits`, async () => {
    const visit = await set.visit({ screen: { width, height: 800 } });
    for (const place of ["", "queue"]) {
      await arrive(visit, { place });
      await visit.page
        .getByRole("cell", { name: /wants 8 GPUs/ })
        .first()
        .waitFor();
      assert.deepEqual(await visit.page.evaluate(cut), []);
    }
    await visit.end();
  });

  test(`at ${width} pixels all of history is seen, with a short word for what could not start`, async () => {
    const visit = await set.visit({ screen: { width, height: 800 } });
    await arrive(visit, { place: "history" });
    const state = visit.page.getByRole("cell").getByText("could not start", { exact: true });
    assert.match(await state.getAttribute("title"), /^could not start: .*\/not\/there/);
    assert.deepEqual(await visit.page.evaluate(cut), []);
    await visit.page.locator("td[data-label='In all']").first().waitFor();
    await visit.page
      .getByRole("row", { name: /could not start/ })
      .getByRole("link")
      .click();
    await visit.page
      .locator(".job-head")
      .getByText(/could not start: .*\/not\/there/)
      .waitFor();
    await visit.end();
  });
}
