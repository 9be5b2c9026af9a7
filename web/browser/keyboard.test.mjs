// Everything by keys alone.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { scene } from "./scene.mjs";

const set = scene();
const FAR = 60;

/** Presses Tab until this has the focus. */
async function tabTo(visit, target) {
  await target.waitFor();
  for (let pressed = 0; pressed < FAR; pressed += 1) {
    await visit.page.keyboard.press("Tab");
    if (await target.evaluate(element => element === document.activeElement)) return;
  }
  assert.fail(`Tab does not lead to ${target}`);
}

test("a job is submitted and cancelled without a pointer", async () => {
  const visit = await set.visit();
  const { page } = visit;
  const { keyboard } = page;
  await visit.sees("launches jobs");
  await keyboard.press("g");
  await keyboard.press("n");
  await visit.heading("Submit a job").waitFor();
  const fields = { Command: "sleep 100000", Directory: join(set.lab.folder, "square"), Name: "by-keys", GPUs: "0" };
  for (const [label, text] of Object.entries(fields)) {
    await tabTo(visit, page.getByLabel(new RegExp(`^${label}`)));
    await keyboard.press("Control+a");
    await keyboard.type(text);
  }
  await tabTo(visit, page.getByRole("button", { name: "Submit", exact: true }));
  await keyboard.press("Enter");
  await tabTo(visit, page.getByRole("link", { name: /^job \d+$/ }));
  await keyboard.press("Enter");
  await visit.heading(/by-keys/).waitFor();
  await tabTo(visit, page.getByRole("button", { name: "Cancel", exact: true }));
  await keyboard.press("Enter");
  await tabTo(visit, page.getByRole("button", { name: /^Cancel job \d+$/ }));
  await keyboard.press("Enter");
  await page.locator(".job-head").getByText("cancelled", { exact: true }).waitFor();
  await visit.end();
});

test("keys lead to the pages, to the search and to the list of keys, and Tab to the content", async () => {
  const visit = await set.visit();
  const { keyboard } = visit.page;
  await visit.sees("launches jobs");
  await keyboard.press("Tab");
  const skip = visit.page.getByRole("button", { name: "To the content" });
  assert.ok(
    await skip.evaluate(element => element === document.activeElement),
    await visit.page.evaluate("document.activeElement.outerHTML"),
  );
  await keyboard.press("Enter");
  assert.equal(await visit.page.evaluate("document.activeElement.id"), "main");
  for (const [key, heading] of Object.entries({ q: "Queue", h: "History", e: "Energy", w: "What if", t: "Notifications", a: "Help" })) {
    await keyboard.press("g");
    await keyboard.press(key);
    await visit.page.getByRole("heading", { level: 1, name: heading }).waitFor();
  }
  await keyboard.press("?");
  await visit.page.getByRole("dialog", { name: "Keys" }).waitFor();
  await keyboard.press("Escape");
  await visit.page.getByRole("dialog").waitFor({ state: "detached" });
  // However long the next page takes.
  const slow = await visit.context.newCDPSession(visit.page);
  await slow.send("Emulation.setCPUThrottlingRate", { rate: 20 });
  await keyboard.press("/");
  await visit.heading("History").waitFor();
  await visit.page.waitForFunction(() => document.activeElement?.getAttribute("type") === "search");
  await visit.end();
});
