// A job that ran out of GPU memory is restarted, and its page shows it.

import { test } from "node:test";
import { scene } from "./setup.mjs";
import { until } from "./until.mjs";

const set = scene({ gpus: "1xA100-40GB" });

test("out of memory first, done in the end", async () => {
  const { manager } = set;
  const large = await manager.submit("--name", "large", "--mem", "26GiB", "--", ...manager.train({ memory: "26GiB", seconds: 100_000 }));
  await until("it has its memory", async () => (await manager.get("/v1/gpus"))[0].memory_used > 25_000);
  const job = await manager.submit("--name", "too-small", "--mem", "2GiB", "--", ...manager.train({ memory: "20GiB", seconds: 60 }));
  const session = await set.session();
  await session.go(`job/${job}`);
  const attempts = session.page.getByRole("table", { name: "Attempts" });
  await attempts.getByRole("row", { name: /^1 gpu0.*out of memory/ }).waitFor();
  await manager.carma("cancel", `${large}`);
  await session.page.locator(".job-head").getByText("succeeded", { exact: true }).waitFor();
  await attempts.getByRole("row", { name: /^2 gpu0.*succeeded/ }).waitFor();
  const events = session.page.getByRole("region", { name: "Events" }).getByRole("listitem");
  for (const words of [/launched \(attempt 1\)/, /GPU memory ran out/, /requeued, to have/, /launched \(attempt 2\)/]) {
    await events.filter({ hasText: words }).first().waitFor();
  }
  // The logs of both attempts are available.
  await session.page.getByRole("combobox", { name: "Attempt" }).selectOption("1");
  await session.press("stderr");
  await session.page
    .getByRole("log")
    .getByText(/CUDA out of memory/)
    .first()
    .waitFor();
  await session.end();
});
