// Takes the pictures of the README from a real run on emulated GPUs: node pictures/take.mjs FOLDER

import { execFile } from "node:child_process";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { busy, TOO_SMALL } from "../browser/load.mjs";
import { openPage, places } from "../browser/places.mjs";
import { openBrowser, Session } from "../browser/session.mjs";
import { PROGRAM, TestManager } from "../browser/test_manager.mjs";
import { until } from "../browser/until.mjs";
import { terminalPage } from "./terminal.mjs";

const run = promisify(execFile);
const LARGEST = 200_000;
const WIDTH = 1280;
const HEIGHTS = { glance: 860, gpu: 1165, job: 1000 };
/** Slow enough that the last ten minutes show everything. */
const SPEED = 6;
const TERMINAL = { columns: 118, rows: 34 };
/** Timeout in milliseconds. */
const MINUTES = 300_000;
/** Period of the charts, in emulated seconds. */
const PAST = 150;

const [folder = "."] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });

/** What `carma top` shows after a while. */
async function top(manager) {
  const tmux = (...words) => run("tmux", ["-L", "carma-pictures", "-f", "/dev/null", ...words]);
  const size = ["-x", `${TERMINAL.columns}`, "-y", `${TERMINAL.rows}`];
  const variables = { CARMA_SOCKET: manager.socket, COLORTERM: "truecolor", LANG: "C.UTF-8" };
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

/** Saves a picture, with fewer colours if a tool for that is installed. */
async function keep(page, name) {
  const path = join(folder, `${name}.png`);
  await page.screenshot({ path });
  await run("pngquant", ["--force", "--ext", ".png", "--skip-if-larger", "128", path]).catch(() => undefined);
  const { size } = statSync(path);
  console.log(`${path}: ${(size / 1000).toFixed(0)} kB`);
  if (size > LARGEST) throw new Error(`${path} is larger than ${LARGEST / 1000} kB`);
}

const [manager, browser] = await Promise.all([TestManager.start({ gpus: "4xA100-40GB", speed: SPEED }), openBrowser()]);
try {
  const jobs = await busy(manager, MINUTES);
  const begun = (await manager.get("/v1/status")).now;
  await until("there is a past", async () => (await manager.get("/v1/status")).now - begun > 1000 * PAST, MINUTES);
  const address = await manager.web();
  const pictures = [
    ["gpu", false],
    ["job", false],
    ["glance", false],
    ["glance", true],
  ];
  for (const [name, dark] of pictures) {
    const session = await Session.open(browser, address, { screen: { width: WIDTH, height: HEIGHTS[name] }, dark });
    await openPage(session, places(jobs)[name]);
    await keep(session.page, name === "glance" ? `${name}-${dark ? "dark" : "light"}` : name);
    await session.end();
  }
  const page = await browser.newPage();
  await page.setContent(terminalPage(await top(manager)));
  const box = await page.locator("pre").boundingBox();
  await page.setViewportSize({ width: Math.ceil(box.width), height: Math.ceil(box.height) });
  await keep(page, "top");
} finally {
  await Promise.all([browser.close(), manager.stop()]);
}
