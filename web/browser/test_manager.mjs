// A manager on its own emulated GPUs, and the address of its page.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

// Time runs fast, and the machine may be busy: samples are rare enough that none is missed.
const SAMPLING = "[window]\nperiod = 5\n[manager.gpus]\nperiod = 5\n";
const run = promisify(execFile);

/** `nobody`: a user of every Debian, not an operator. */
export const OTHER_USER = 65534;
const asUser = user => ["setpriv", "--reuid", `${user}`, "--regid", `${user}`, "--clear-groups", "--"];

export class TestManager {
  #manager;
  #bridges = [];
  #agents = [];

  constructor(folder, gpus) {
    this.folder = folder;
    this.gpus = gpus;
    this.socket = join(folder, "state", "carma.sock");
    this.environment = {
      ...process.env,
      CARMA_SOCKET: this.socket,
      PATH: `${join(folder, "bin")}:${dirname(PROGRAM)}:${process.env.PATH}`,
    };
    this.speed = 1;
  }

  /** A manager that answers. `state` may hold what another manager left; `programs` are shell scripts that it finds first. */
  static async start({ gpus = "2xA100-40GB", speed = 60, configuration = "", state = undefined, programs = {} } = {}) {
    const folder = mkdtempSync(join(tmpdir(), "carma-browser-"));
    const manager = new TestManager(folder, join(folder, "gpus"));
    // Other users need access, and a folder to write to.
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, "square"));
    chmodSync(join(folder, "square"), 0o1777);
    mkdirSync(join(folder, "bin"));
    for (const [name, script] of Object.entries(programs))
      writeFileSync(join(folder, "bin", name), `#!/bin/sh\n${script}`, { mode: 0o755 });
    writeFileSync(join(folder, "carma.toml"), configuration + SAMPLING);
    manager.speed = speed;
    await state?.(join(folder, "state"));
    await run(PROGRAM, ["emu", "up", "--folder", manager.gpus, "--gpus", gpus, "--speed", `${speed}`]);
    await manager.up();
    return manager;
  }

  /** Starts the manager, and waits until it answers. */
  async up() {
    const words = ["up", "--state", join(this.folder, "state"), "--config", join(this.folder, "carma.toml")];
    this.#manager = spawn(PROGRAM, words, { env: { ...this.environment, CARMA_EMU: this.gpus }, stdio: ["ignore", "ignore", "pipe"] });
    let message = "";
    this.#manager.stderr.on("data", text => {
      message += text;
    });
    await until("the manager answers", async () => {
      if (this.#manager.exitCode !== null) throw new Error(`the manager ended: ${message}`);
      return this.get("/v1/status").catch(() => undefined);
    });
  }

  /** Stops the manager; its jobs go on. */
  async down() {
    const ended = once(this.#manager, "exit");
    await this.carma("down");
    await ended;
  }

  /** The output of a carma command. */
  async carma(...words) {
    return (await run(PROGRAM, words, { env: this.environment, cwd: join(this.folder, "square") })).stdout;
  }

  /** The same, as another user. */
  async carmaAs(user, ...words) {
    const [first, ...rest] = [...asUser(user), PROGRAM, ...words];
    return (await run(first, rest, { env: this.environment, cwd: join(this.folder, "square") })).stdout;
  }

  /** Submits a job or an array, and returns the first number. */
  async submit(...words) {
    return Number.parseInt(await this.carma("submit", "--quiet", ...words), 10);
  }

  /** The command of a training-like job: emulated seconds and memory; unset memory: that of the workload. */
  train({ seconds = 120, memory = undefined, workload = "resnet50_imagenet_bs64" } = {}) {
    const words = ["carma", "emu", "train", "--workload", workload, "--seconds", `${seconds}`];
    return memory ? [...words, "--memory", memory] : words;
  }

  /** The answer to a GET request. */
  get(path) {
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
  reaches(job, state, timeout = undefined) {
    const check = async () => (await this.get(`/v1/jobs/${job}`)).state.state === state;
    return until(`job ${job} is ${state}`, check, timeout);
  }

  /** An agent with its own emulated GPUs, as on another node, until it has connected. It ends with `stop`, or by its `end`. */
  async agent(node, gpus, words = []) {
    const folder = join(this.folder, `gpus-${node}`);
    await run(PROGRAM, ["emu", "up", "--folder", folder, "--gpus", gpus, "--speed", `${this.speed}`]);
    const env = { ...this.environment, CARMA_EMU: folder, SLURMD_NODENAME: node };
    const agent = spawn(PROGRAM, ["agent", "--state", join(this.folder, "state"), ...words], { env, stdio: "ignore" });
    const ended = once(agent, "exit");
    const end = async signal => {
      agent.kill(signal);
      await ended;
      await run(PROGRAM, ["emu", "down", "--folder", folder, "--force"]);
    };
    this.#agents.push({ agent, end });
    await until(`${node} connects`, async () => (await this.get("/v1/servers")).some(server => server.node === node && server.connected));
    return end;
  }

  /** The page's address for this user, with the secret. Its `carma web` runs until `stop`. */
  async web(user = undefined) {
    const [first, ...rest] = [...(user === undefined ? [] : asUser(user)), PROGRAM, "web", "--port", "0"];
    const bridge = spawn(first, rest, { env: this.environment, stdio: ["ignore", "pipe", "ignore"], cwd: "/" });
    this.#bridges.push(bridge);
    for await (const line of createInterface({ input: bridge.stdout })) return line;
    throw new Error("carma web printed no address");
  }

  async stop() {
    for (const bridge of this.#bridges) bridge.kill();
    if (this.#manager.exitCode === null) {
      await this.carma("cancel", "--all", "--yes").catch(() => undefined);
      await until("nothing runs", async () => (await this.get("/v1/status")).jobs.running === 0);
      const agents = this.#agents.filter(({ agent }) => agent.exitCode === null && agent.signalCode === null);
      await Promise.all(agents.map(({ end }) => end("SIGTERM")));
      await this.down();
    }
    await run(PROGRAM, ["emu", "down", "--folder", this.gpus, "--force"]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Why this machine cannot run the tests with several users, or false. Under CI, which runs as root, only a private folder is a reason. */
export async function cannotSwitchUser(test) {
  if (process.getuid?.() !== 0) return skipped(test, "needs root", false);
  const [first, ...rest] = [...asUser(OTHER_USER), "test", "-x", PROGRAM];
  const can = await run(first, rest).catch(() => undefined);
  return can ? false : skipped(test, `other users cannot execute ${PROGRAM}`, true);
}
