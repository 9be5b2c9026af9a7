// A job that runs out of GPU memory is brought back, and its page tells how.

import { test } from "node:test";
import { scene } from "./scene.mjs";

const set = scene({ gpus: "1xA100-40GB" });

test("out of memory first, done in the end", async () => {
  const { lab } = set;
  const large = await lab.submit("--name", "large", "--mem", "26GiB", "--", ...lab.train({ memory: "26GiB", seconds: 100_000 }));
  await lab.reaches(large, "running");
  const job = await lab.submit("--name", "too-small", "--mem", "2GiB", "--", ...lab.train({ memory: "20GiB", seconds: 60 }));
  const visit = await set.visit();
  await visit.go(`job/${job}`);
  const attempts = visit.page.getByRole("table", { name: "Attempts" });
  await attempts.getByRole("row", { name: /^1 gpu0.*out of memory/ }).waitFor();
  await lab.carma("cancel", `${large}`);
  await visit.page.locator(".job-head").getByText("succeeded", { exact: true }).waitFor();
  await attempts.getByRole("row", { name: /^2 gpu0.*succeeded/ }).waitFor();
  const events = visit.page.getByRole("region", { name: "What happened" }).getByRole("listitem");
  for (const words of [/launched \(attempt 1\)/, /GPU memory ran out/, /requeued, to have/, /launched \(attempt 2\)/]) {
    await events.filter({ hasText: words }).first().waitFor();
  }
  // The log of either attempt can be read.
  await visit.page.getByRole("combobox", { name: "Attempt" }).selectOption("1");
  await visit.press("stderr");
  await visit.page
    .getByRole("log")
    .getByText(/CUDA out of memory/)
    .first()
    .waitFor();
  await visit.end();
});
