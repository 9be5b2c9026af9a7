// Light and dark: as the system, or as the user chose.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scene } from "./setup.mjs";

const set = scene();

/** Lightness of the background, from 0 to 255. */
async function lightness(session) {
  await session.sees("active, up");
  const colour = await session.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const parts = colour
    .match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number);
  return parts.reduce((sum, part) => sum + part, 0) / 3;
}

test("the page is as dark as the system until the user chooses, and then it stays so", async () => {
  const session = await set.session({ dark: true });
  assert.ok((await lightness(session)) < 64);
  await session.page.getByLabel("Colours").selectOption("light");
  assert.ok((await lightness(session)) > 192);
  await session.page.reload();
  assert.ok((await lightness(session)) > 192);
  await session.page.getByLabel("Colours").selectOption("system");
  assert.ok((await lightness(session)) < 64);
  await session.page.emulateMedia({ colorScheme: "light" });
  assert.ok((await lightness(session)) > 192);
  await session.end();
});
