// Every page on desktop and phone, light and dark: accessible, within its width, and saved as a picture.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { violations } from "./accessible.mjs";
import { busy } from "./load.mjs";
import { openPage, places } from "./places.mjs";
import { DESK, PHONE } from "./session.mjs";
import { scene } from "./setup.mjs";
import { TARGET } from "./test_manager.mjs";

const PICTURES = join(TARGET, "screenshots");
mkdirSync(PICTURES, { recursive: true });

let jobs;
const set = scene({ gpus: "4xA100-40GB" }, async manager => {
  jobs = await busy(manager);
});

/** Boxes whose content overflows; runs in the browser. */
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
      const session = await set.session({ screen, dark });
      for (const [page, place] of Object.entries(places(jobs))) {
        await context.test(page, async () => {
          await openPage(session, place);
          await session.page.screenshot({ path: join(PICTURES, `${page}-${name}.png`), fullPage: true });
          assert.deepEqual(await session.page.evaluate(spilling), []);
          const beyond = await session.page.evaluate(() => (document.scrollingElement?.scrollWidth ?? 0) - innerWidth);
          assert.ok(beyond <= 0, `the page is ${beyond} pixels wider than the screen`);
          assert.deepEqual(await violations(session.page), []);
        });
      }
      await session.end();
    });
  }
}
