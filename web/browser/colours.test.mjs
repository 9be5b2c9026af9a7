// Light and dark: as the system has it, or as somebody chose.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scene } from "./scene.mjs";

const set = scene();

/** How light the page's ground is, from 0 to 255. */
async function lightness(visit) {
  await visit.sees("launches jobs");
  const colour = await visit.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const parts = colour
    .match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number);
  return parts.reduce((sum, part) => sum + part, 0) / 3;
}

test("the page is as dark as the system, until somebody chooses, and then it stays so", async () => {
  const visit = await set.visit({ dark: true });
  assert.ok((await lightness(visit)) < 64);
  await visit.page.getByLabel("Colours").selectOption("light");
  assert.ok((await lightness(visit)) > 192);
  await visit.page.reload();
  assert.ok((await lightness(visit)) > 192);
  await visit.page.getByLabel("Colours").selectOption("system");
  assert.ok((await lightness(visit)) < 64);
  await visit.page.emulateMedia({ colorScheme: "light" });
  assert.ok((await lightness(visit)) > 192);
  await visit.end();
});
