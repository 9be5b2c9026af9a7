// Connected servers, and pools of pilots.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { violations } from "./accessible.mjs";
import { openPage } from "./places.mjs";
import { DESK, PHONE, Session } from "./session.mjs";
import { scene } from "./setup.mjs";
import { cannotSwitchUser, OTHER_USER, TARGET } from "./test_manager.mjs";
import { until } from "./until.mjs";

const PICTURES = join(TARGET, "screenshots");
mkdirSync(PICTURES, { recursive: true });

// Slurm accepts each pilot, and none starts.
const programs = {
  sbatch: `
    for word in "$@"; do case "$word" in --job-name=*) echo "\${word#--job-name=}" >> "\${0%/*}/requested"; esac; done
    echo 4711`,
  squeue: `
    test -e "\${0%/*}/requested" || exit 0
    while read -r name; do echo "4711|$name|PENDING|Priority|INVALID|"; done < "\${0%/*}/requested"`,
  scancel: "exit 0",
};
const POOL = ["pool", "add", "slurm", "night", "--partition", "gpu", "--gpus", "4", "--gpu-memory", "80GiB", "--account", "ml"];
const NODE = "gpu-node-with-a-long-name-017";

const set = scene({ gpus: "1xA100-40GB", configuration: '[manager.agents]\nlisten = "127.0.0.1:0"\nlease = 15\ngrace = 1\n', programs });

test("without servers and pools there is no page for them", async () => {
  const session = await set.session();
  await session.heading("Overview").waitFor();
  await session.sees("active, up");
  assert.equal(await session.page.getByRole("link", { name: "Servers", exact: true }).count(), 0);
  await session.end();
});

test("a server of an agent is listed with its node, its end and its GPUs, and misses its agent", async () => {
  const { manager } = set;
  const end = await manager.agent(NODE, "2xA100-40GB", ["--ends-at", `${Math.floor(Date.now() / 1000) + 7200}`]);
  const job = await manager.submit("--name", "elsewhere", "--gpus", "2", "--mem", "8GiB", "--", ...manager.train({ seconds: 1_000_000 }));
  await manager.reaches(job, "running");
  const session = await set.session();
  const card = session.page.locator(".gpu-card", { hasText: "s1/gpu1" });
  await card.getByText(NODE).waitFor();
  await session.page.getByRole("link", { name: "Servers", exact: true }).click();
  const table = session.page.getByRole("table", { name: "Connected servers" });
  await table.getByRole("row", { name: new RegExp(`s1 ${NODE} 2 1 \\d+ \\w+.* connected`) }).waitFor();
  await session.go("gpu/s1%2Fgpu0");
  await session.heading("s1/gpu0").waitFor();
  await session.sees(`on ${NODE}`);
  await session.go(`job/${job}`);
  await session.page.getByRole("table", { name: "Attempts" }).getByRole("link", { name: "s1/gpu0" }).waitFor();

  await session.go("servers");
  await end("SIGKILL");
  await table.getByText("not connected").waitFor();
  await manager.carma("cancel", `${job}`);
  await session.end();
});

test("a pool shows its pilots and why it requests none, and an operator pauses and resumes it", async () => {
  const { manager } = set;
  await manager.carma(...POOL);
  const job = await manager.submit("--name", "large", "--gpus", "4", "--mem", "60GiB", "--", "true");
  await until("a pilot is pending", async () => (await manager.get("/v1/pools"))[0].pilots.some(({ batch_state: says }) => says));
  const session = await set.session();
  await session.go("servers");
  const pool = session.page.getByRole("article", { name: "Pool night" });
  await pool.getByText("0 connected, 1 pending, maximum 4").waitFor();
  await pool.getByText(/^Now: /).waitFor();
  await pool.getByText("4 GPUs for 8 h").waitFor();
  await pool.getByRole("row", { name: /carma-\S+ 4711 .*pending.*Priority/ }).waitFor();

  const dialog = session.page.getByRole("dialog");
  await session.press("Pause pool night");
  await session.press("Go back", dialog);
  assert.ok(!(await manager.get("/v1/pools"))[0].paused);
  await session.press("Pause pool night");
  await session.press("Pause night", dialog);
  await pool.getByText(/^This pool requests no pilots: paused by \w+\.$/).waitFor();

  // Its job says so too.
  await session.go(`job/${job}`);
  const lines = session.page.getByRole("list", { name: "Pools" });
  await lines.getByText(/pool night: .*paused by/).waitFor();
  await session.go("servers");
  await session.press("Resume pool night");
  await session.press("Resume night", dialog);
  await pool.getByText("active", { exact: true }).waitFor();
  await session.end();
});

const READ_ONLY = "other users see pools and cannot change them";
test(READ_ONLY, { skip: await cannotSwitchUser(READ_ONLY) }, async () => {
  const session = await Session.open(set.browser, await set.manager.web(OTHER_USER));
  await session.go("servers");
  await session.page.getByRole("article", { name: "Pool night" }).waitFor();
  assert.equal(await session.page.getByRole("button", { name: /pool night/ }).count(), 0);
  await session.end();
});

for (const screen of [DESK, PHONE]) {
  for (const dark of [false, true]) {
    test(`both are accessible, and fit ${screen.width} pixels, ${dark ? "dark" : "light"}`, async () => {
      const names = (await set.manager.get("/v1/servers")).filter(({ connected }) => connected).map(({ node }) => node);
      if (!names.includes("gn2")) {
        await set.manager.agent("gn2", "2xA100-40GB");
        const job = await set.manager.submit("--name", "elsewhere", "--gpus", "2", "--", ...set.manager.train({ seconds: 1_000_000 }));
        await set.manager.reaches(job, "running");
      }
      const session = await set.session({ screen, dark });
      for (const place of ["servers", "", "gpu/s2%2Fgpu0"]) {
        await openPage(session, { place });
        if (place === "servers") await session.page.getByRole("article", { name: "Pool night" }).waitFor();
        const beyond = await session.page.evaluate(() => (document.scrollingElement?.scrollWidth ?? 0) - innerWidth);
        assert.ok(beyond <= 0, `${place} is ${beyond} pixels wider than the screen`);
        assert.deepEqual(await violations(session.page), []);
        const picture = `${place.replace(/\W/g, "-") || "glance"}-several-${screen.width}-${dark ? "dark" : "light"}.png`;
        await session.page.screenshot({ path: join(PICTURES, picture), fullPage: true });
      }
      await session.end();
    });
  }
}
