// Speed of every page with 10,000 jobs in history and 64 GPUs.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { scene } from "./setup.mjs";
import { PROGRAM } from "./test_manager.mjs";

const SEED = process.env.SEED_HISTORY ?? join(dirname(PROGRAM), "seed-history");
const TIMES = 7;
/** The aim on an idle machine and the limit on a busy one, in milliseconds. */
const AIM = 200;
const BOUND = 1000;

const set = scene(
  {
    gpus: "64xA100-40GB",
    speed: 1,
    state: async folder => {
      mkdirSync(folder);
      await promisify(execFile)(SEED, [folder, "--days", "7"]);
    },
  },
  manager => manager.submit("--hold", "--array", "1-200", "--name", "held-back", "--", "true"),
);

/** Pages, and the elements that must be visible before a page counts as shown. */
const PAGES = {
  glance: ["", ".gpu-card", 64],
  gpu: ["gpu/s0%2Fgpu7", "figure svg", 4],
  "gpu, an hour": ["gpu/s0%2Fgpu7?span=1h", "figure svg", 4],
  "gpu, seven days": ["gpu/s0%2Fgpu7?span=7d", "figure svg", 4],
  job: ["job/5000", "tbody tr", 1],
  queue: ["queue", "tbody tr", 1],
  "array of 200": ["history?array=10001&each=yes", "tbody tr", 100],
  history: ["history?each=yes", "tbody tr", 100],
  users: ["users", "tbody tr", 1],
  user: ["user/60101", "tbody tr", 1],
  "history, searched": ["history?text=resnet", "tbody tr", 1],
  energy: ["energy", "tbody tr", 1],
  "energy, by job": ["energy?by=job&span=30", "tbody tr", 100],
  "what if": ["what-if", "h1", 1],
  submit: ["submit", "h1", 1],
  notifications: ["notifications", "form", 1],
  help: ["help", "h1", 1],
};

/** Milliseconds from the change of the address to the complete frame; runs in the browser. */
function arrival([place, wanted, number]) {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    setTimeout(() => reject(new Error(`${place} has not been shown for 30 s`)), 30_000);
    location.hash = `#/${place}`;
    const check = () => {
      const there = document.querySelectorAll(`main ${wanted}`).length >= number && !document.body.textContent.includes("Loading …");
      if (there) resolve(performance.now() - begun);
      else requestAnimationFrame(check);
    };
    requestAnimationFrame(check);
  });
}

test("every page is shown quickly", async context => {
  const session = await set.session();
  await session.page.locator(".gpu-card").nth(63).waitFor();
  const medians = {};
  for (const [name, page] of Object.entries(PAGES)) {
    const took = [];
    for (let time = 0; time < TIMES; time += 1) {
      // From another page, so that nothing is left of this one.
      await session.page.evaluate(arrival, name === "help" ? PAGES.submit : PAGES.help);
      took.push(await session.page.evaluate(arrival, page));
    }
    medians[name] = took.sort((a, b) => a - b)[TIMES >> 1];
    context.diagnostic(
      `${name.padEnd(18)} ${medians[name].toFixed(0).padStart(5)} ms${medians[name] > AIM ? " (more than aimed at)" : ""}`,
    );
  }
  for (const [name, median] of Object.entries(medians)) assert.ok(median < BOUND, `${name} took ${median} ms`);
  await session.end();
});
