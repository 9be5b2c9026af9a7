// A GPU that the driver no longer finds looks lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import { violations } from "./accessible.mjs";
import { scene } from "./setup.mjs";
import { until } from "./until.mjs";

const set = scene();

test("a lost GPU is neither idle nor free, and shows no old samples", async () => {
  const { manager } = set;
  const gpus = () => manager.get("/v1/gpus");
  await until("both are sampled", async () => (await gpus()).every(({ power }) => power));
  await manager.carma("emu", "fault", "--folder", manager.gpus, "lost", "--gpu", "1");
  await until("it is lost", async () => (await gpus())[1].lost);
  const session = await set.session();
  const card = session.page.locator(".gpu-card", { hasText: "gpu1" });
  await card.getByText("lost", { exact: true }).waitFor();
  await card.getByText("The driver no longer finds this GPU.").waitFor();
  assert.doesNotMatch(await card.innerText(), /idle|GiB|\d W/);
  await session.page.locator(".gpu-card", { hasText: "gpu0" }).getByText("idle").waitFor();
  assert.deepEqual(await violations(session.page), []);

  await session.go("gpu/s0%2Fgpu1");
  const fact = name => session.page.locator(".fact", { has: session.page.getByText(name, { exact: true }) }).locator("dd");
  assert.equal(await fact("Free to reserve").innerText(), "0 GiB");
  assert.equal(await fact("Power").innerText(), "–");
  assert.deepEqual(await violations(session.page), []);
  await session.end();
});
