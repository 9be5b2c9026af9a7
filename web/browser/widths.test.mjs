// No column of a table is cut off, for any job name and screen width.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openPage } from "./places.mjs";
import { scene } from "./setup.mjs";

const WIDTHS = [1280, 1024, 768, 390];
const LONG = "a-really-long-name-that-nobody-would-abbreviate-in-reality-so-it-stays";

const set = scene({}, async manager => {
  await manager.submit("--name", LONG, "--mem", "8GiB", "--", ...manager.train({ memory: "6GiB", seconds: 100_000 }));
  await manager.submit("--name", LONG, "--gpus", "8", "--mem", "30GiB", "--wait-for-hardware", "--", "true");
  const failed = await manager.submit("--name", LONG, "--gpus", "0", "--", "/a/program/that/is/not/there");
  await manager.reaches(failed, "done");
});

/** Cells that overflow their table, and names that are cut off without a title; runs in the browser. */
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
    const session = await set.session({ screen: { width, height: 800 } });
    for (const place of ["", "queue"]) {
      await openPage(session, { place });
      await session.page
        .getByRole("cell", { name: /needs 8 GPUs/ })
        .first()
        .waitFor();
      assert.deepEqual(await session.page.evaluate(cut), []);
    }
    await session.end();
  });

  test(`at ${width} pixels all of history is seen, with a short word for what could not start`, async () => {
    const session = await set.session({ screen: { width, height: 800 } });
    await openPage(session, { place: "history" });
    const state = session.page.getByRole("cell").getByText("could not start", { exact: true });
    assert.match(await state.getAttribute("title"), /^could not start: .*\/not\/there/);
    assert.deepEqual(await session.page.evaluate(cut), []);
    await session.page.locator("td[data-label='Total time']").first().waitFor();
    await session.page
      .getByRole("row", { name: /could not start/ })
      .getByRole("link")
      .first()
      .click();
    await session.page
      .locator(".job-head")
      .getByText(/could not start: .*\/not\/there/)
      .waitFor();
    await session.end();
  });
}
