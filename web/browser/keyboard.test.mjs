// Use by keyboard only.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { scene } from "./setup.mjs";

const set = scene();
const FAR = 60;

/** Presses Tab until this has the focus. */
async function tabTo(session, target) {
  await target.waitFor();
  for (let pressed = 0; pressed < FAR; pressed += 1) {
    await session.page.keyboard.press("Tab");
    if (await target.evaluate(element => element === document.activeElement)) return;
  }
  assert.fail(`Tab does not lead to ${target}`);
}

test("a job is submitted and cancelled without a pointer", async () => {
  const session = await set.session();
  const { page } = session;
  const { keyboard } = page;
  await session.sees("active, up");
  await keyboard.press("g");
  await keyboard.press("n");
  await session.heading("Submit a job").waitFor();
  const fields = { Command: "sleep 100000", Directory: join(set.manager.folder, "square"), Name: "by-keys", GPUs: "0" };
  for (const [label, text] of Object.entries(fields)) {
    await tabTo(session, page.getByLabel(new RegExp(`^${label}`)));
    await keyboard.press("Control+a");
    await keyboard.type(text);
  }
  await tabTo(session, page.getByRole("button", { name: "Submit", exact: true }));
  await keyboard.press("Enter");
  await tabTo(session, page.getByRole("link", { name: /^job \d+$/ }));
  await keyboard.press("Enter");
  await session.heading(/by-keys/).waitFor();
  await tabTo(session, page.getByRole("button", { name: "Cancel", exact: true }));
  await keyboard.press("Enter");
  await tabTo(session, page.getByRole("button", { name: /^Cancel job \d+$/ }));
  await keyboard.press("Enter");
  await page.locator(".job-head").getByText("cancelled", { exact: true }).waitFor();
  await session.end();
});

test("keys lead to the pages, to the search and to the list of keys, and Tab to the content", async () => {
  const session = await set.session();
  const { keyboard } = session.page;
  await session.sees("active, up");
  await keyboard.press("Tab");
  const skip = session.page.getByRole("button", { name: "Skip to the content" });
  assert.ok(
    await skip.evaluate(element => element === document.activeElement),
    await session.page.evaluate("document.activeElement.outerHTML"),
  );
  await keyboard.press("Enter");
  assert.equal(await session.page.evaluate("document.activeElement.id"), "main");
  for (const [key, heading] of Object.entries({ q: "Queue", h: "History", e: "Energy", w: "What if", t: "Notifications", a: "Help" })) {
    await keyboard.press("g");
    await keyboard.press(key);
    await session.page.getByRole("heading", { level: 1, name: heading }).waitFor();
  }
  await keyboard.press("?");
  await session.page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await keyboard.press("Escape");
  await session.page.getByRole("dialog").waitFor({ state: "detached" });
  // Even if the next page takes long.
  const slow = await session.context.newCDPSession(session.page);
  await slow.send("Emulation.setCPUThrottlingRate", { rate: 20 });
  await keyboard.press("/");
  await session.heading("History").waitFor();
  await session.page.waitForFunction(() => document.activeElement?.getAttribute("type") === "search");
  await session.end();
});
