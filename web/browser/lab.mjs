// A machine with emulated GPUs and a manager of its own, as people run them, and the address of its page.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { skipped } from "./skipped.mjs";
import { until } from "./until.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const TARGET = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");
export const PROGRAM = process.env.CARMA ?? join(TARGET, "debug", "carma");

// Time runs fast, and the machine may be busy: looks are seldom enough that none is missed.
const LOOKS = "[window]\nperiod = 5\n[manager.gpus]\nperiod = 5\n";
const run = promisify(execFile);

/** Somebody who is no operator, and whom every Debian has. */
export const NOBODY = 65534;
const becoming = user => ["setpriv", "--reuid", `${user}`, "--regid", `${user}`, "--clear-groups", "--"];

export class Lab {
  #manager;
  #bridges = [];

  constructor(folder, gpus) {
    this.folder = folder;
    this.gpus = gpus;
    this.socket = join(folder, "state", "carma.sock");
    this.environment = { ...process.env, CARMA_SOCKET: this.socket, PATH: `${dirname(PROGRAM)}:${process.env.PATH}` };
  }

  /** A manager that answers. `state` may hold what another manager left. */
  static async start({ gpus = "2xA100-40GB", speed = 60, configuration = "", state = undefined } = {}) {
    const folder = mkdtempSync(join(tmpdir(), "carma-browser-"));
    const lab = new Lab(folder, join(folder, "gpus"));
    // Others may come in, and write in their own folder.
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, "square"));
    chmodSync(join(folder, "square"), 0o1777);
    writeFileSync(join(folder, "carma.toml"), configuration + LOOKS);
    await state?.(join(folder, "state"));
    await run(PROGRAM, ["emu", "up", "--folder", lab.gpus, "--gpus", gpus, "--speed", `${speed}`]);
    await lab.up();
    return lab;
  }

  /** Starts the manager, and waits until it answers. */
  async up() {
    const words = ["up", "--state", join(this.folder, "state"), "--config", join(this.folder, "carma.toml")];
    this.#manager = spawn(PROGRAM, words, { env: { ...this.environment, CARMA_EMU: this.gpus }, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    this.#manager.stderr.on("data", text => {
      said += text;
    });
    await until("the manager answers", async () => {
      if (this.#manager.exitCode !== null) throw new Error(`the manager ended: ${said}`);
      return this.ask("/v1/status").catch(() => undefined);
    });
  }

  /** Stops the manager; its jobs go on. */
  async down() {
    const ended = once(this.#manager, "exit");
    await this.carma("down");
    await ended;
  }

  /** Runs the command line and gives what it prints. */
  async carma(...words) {
    return (await run(PROGRAM, words, { env: this.environment, cwd: join(this.folder, "square") })).stdout;
  }

  /** The same as another user. */
  async carmaAs(user, ...words) {
    const [first, ...rest] = [...becoming(user), PROGRAM, ...words];
    return (await run(first, rest, { env: this.environment, cwd: join(this.folder, "square") })).stdout;
  }

  /** Submits a job, or an array of them, and gives the first number. */
  async submit(...words) {
    return Number.parseInt(await this.carma("submit", "--quiet", ...words), 10);
  }

  /** The words of a training-like job: for how many emulated seconds, and with how much memory; unset: as the workload has it. */
  train({ seconds = 120, memory = undefined, workload = "resnet50_imagenet_bs64" } = {}) {
    const words = ["carma", "emu", "train", "--workload", workload, "--seconds", `${seconds}`];
    return memory ? [...words, "--memory", memory] : words;
  }

  /** What the manager answers. */
  ask(path) {
    return new Promise((resolve, reject) => {
      const asked = request({ socketPath: this.socket, path }, async answer => {
        let text = "";
        for await (const piece of answer) text += piece;
        if (answer.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`${path}: ${answer.statusCode} ${text}`));
      });
      asked.on("error", reject).end();
    });
  }

  /** Waits until a job is in this state. */
  reaches(job, state, patience = undefined) {
    const look = async () => (await this.ask(`/v1/jobs/${job}`)).state.state === state;
    return until(`job ${job} is ${state}`, look, patience);
  }

  /** The page's address for this user, with the secret; whose `carma web` runs as long as the lab. */
  async web(user = undefined) {
    const [first, ...rest] = [...(user === undefined ? [] : becoming(user)), PROGRAM, "web", "--port", "0"];
    const bridge = spawn(first, rest, { env: this.environment, stdio: ["ignore", "pipe", "ignore"], cwd: "/" });
    this.#bridges.push(bridge);
    for await (const line of createInterface({ input: bridge.stdout })) return line;
    throw new Error("carma web printed no address");
  }

  async stop() {
    for (const bridge of this.#bridges) bridge.kill();
    if (this.#manager.exitCode === null) {
      await this.carma("cancel", "--all", "--yes").catch(() => undefined);
      await until("nothing runs", async () => (await this.ask("/v1/status")).jobs.running === 0);
      await this.down();
    }
    await run(PROGRAM, ["emu", "down", "--folder", this.gpus, "--force"]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Why this machine cannot run the tests with several users, or false. Under CI, which runs as root, only a private folder is a reason. */
export async function cannotBecomeOthers(test) {
  if (process.getuid?.() !== 0) return skipped(test, "needs root", false);
  const [first, ...rest] = [...becoming(NOBODY), "test", "-x", PROGRAM];
  const can = await run(first, rest).catch(() => undefined);
  return can ? false : skipped(test, `other users cannot execute ${PROGRAM}`, true);
}

/** What is beside these files. */
export const beside = name => readFileSync(new URL(name, import.meta.url), "utf8");
