// Every page on a desk and on a phone, in light and in dark: accessible, within its width, and kept as a picture.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { violations } from "./accessible.mjs";
import { TARGET } from "./lab.mjs";
import { busy } from "./load.mjs";
import { arrive, places } from "./places.mjs";
import { scene } from "./scene.mjs";
import { DESK, PHONE } from "./visit.mjs";

const PICTURES = join(TARGET, "screenshots");
mkdirSync(PICTURES, { recursive: true });

let jobs;
const set = scene({ gpus: "4xA100-40GB" }, async lab => {
  jobs = await busy(lab);
});

/** Boxes with a border whose content goes beyond it; runs in the browser. */
function spilling() {
  const boxes = [...document.querySelectorAll("main *, dialog *")].filter(box => {
    const { borderRightWidth, overflowX, display } = getComputedStyle(box);
    return borderRightWidth !== "0px" && overflowX === "visible" && display !== "inline" && box.scrollWidth > box.clientWidth + 1;
  });
  return boxes.map(box => box.outerHTML.slice(0, 200));
}

for (const screen of [DESK, PHONE]) {
  for (const dark of [false, true]) {
    const name = `${screen.width}-${dark ? "dark" : "light"}`;
    test(`every page at ${name}`, async context => {
      const visit = await set.visit({ screen, dark });
      for (const [page, place] of Object.entries(places(jobs))) {
        await context.test(page, async () => {
          await arrive(visit, place);
          await visit.page.screenshot({ path: join(PICTURES, `${page}-${name}.png`), fullPage: true });
          assert.deepEqual(await visit.page.evaluate(spilling), []);
          const beyond = await visit.page.evaluate(() => (document.scrollingElement?.scrollWidth ?? 0) - innerWidth);
          assert.ok(beyond <= 0, `the page is ${beyond} pixels wider than the screen`);
          assert.deepEqual(await violations(visit.page), []);
        });
      }
      await visit.end();
    });
  }
}
