// Takes the pictures of the README from a real run on emulated GPUs: node pictures/take.mjs FOLDER

import { execFile } from "node:child_process";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Lab, PROGRAM } from "../browser/lab.mjs";
import { busy, TOO_SMALL } from "../browser/load.mjs";
import { arrive, places } from "../browser/places.mjs";
import { until } from "../browser/until.mjs";
import { openBrowser, Visit } from "../browser/visit.mjs";
import { terminalPage } from "./terminal.mjs";

const run = promisify(execFile);
const LARGEST = 200_000;
const WIDTH = 1280;
const HEIGHTS = { glance: 860, gpu: 1165, job: 1000 };
/** Slow enough that the latest ten minutes hold it all. */
const SPEED = 6;
const TERMINAL = { columns: 118, rows: 34 };
/** How long this may take, in milliseconds. */
const MINUTES = 300_000;
/** How much of the past the charts are to show, in emulated seconds. */
const PAST = 150;

const [folder = "."] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });

/** What `carma top` shows after a while. */
async function top(lab) {
  const tmux = (...words) => run("tmux", ["-L", "carma-pictures", "-f", "/dev/null", ...words]);
  const size = ["-x", `${TERMINAL.columns}`, "-y", `${TERMINAL.rows}`];
  const variables = { CARMA_SOCKET: lab.socket, COLORTERM: "truecolor", LANG: "C.UTF-8" };
  const given = Object.entries(variables).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
  await tmux("new-session", "-d", ...size, ...given, PROGRAM, "top");
  try {
    const shown = async () => (await tmux("capture-pane", "-e", "-N", "-p")).stdout;
    return await until("carma top shows jobs and events", async () => {
      const text = await shown();
      return text.includes(TOO_SMALL.name) && /job \d+ (launched|ended|finished)/.test(text) && text;
    });
  } finally {
    await tmux("kill-server");
  }
}

/** Keeps a picture, with fewer colours where a tool for that is there. */
async function keep(page, name) {
  const path = join(folder, `${name}.png`);
  await page.screenshot({ path });
  await run("pngquant", ["--force", "--ext", ".png", "--skip-if-larger", "128", path]).catch(() => undefined);
  const { size } = statSync(path);
  console.log(`${path}: ${(size / 1000).toFixed(0)} kB`);
  if (size > LARGEST) throw new Error(`${path} is larger than ${LARGEST / 1000} kB`);
}

const [lab, browser] = await Promise.all([Lab.start({ gpus: "4xA100-40GB", speed: SPEED }), openBrowser()]);
try {
  const jobs = await busy(lab, MINUTES);
  const begun = (await lab.ask("/v1/status")).now;
  await until("there is a past", async () => (await lab.ask("/v1/status")).now - begun > 1000 * PAST, MINUTES);
  const address = await lab.web();
  const pictures = [
    ["gpu", false],
    ["job", false],
    ["glance", false],
    ["glance", true],
  ];
  for (const [name, dark] of pictures) {
    const visit = await Visit.open(browser, address, { screen: { width: WIDTH, height: HEIGHTS[name] }, dark });
    await arrive(visit, places(jobs)[name]);
    await keep(visit.page, name === "glance" ? `${name}-${dark ? "dark" : "light"}` : name);
    await visit.end();
  }
  const page = await browser.newPage();
  await page.setContent(terminalPage(await top(lab)));
  const box = await page.locator("pre").boundingBox();
  await page.setViewportSize({ width: Math.ceil(box.width), height: Math.ceil(box.height) });
  await keep(page, "top");
} finally {
  await Promise.all([browser.close(), lab.stop()]);
}
