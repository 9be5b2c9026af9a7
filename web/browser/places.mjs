// Every page there is, and when it has something to show.

/** The pages, for what `busy` has started. */
export const places = jobs => ({
  glance: "",
  gpu: "gpu/s0%2Fgpu1",
  "gpu-hour": "gpu/s0%2Fgpu1?span=1h",
  job: `job/${jobs["llama3-8layer"]}`,
  "job-failed": `job/${jobs.broken}`,
  "job-waiting": `job/${jobs.waiting}`,
  queue: "queue",
  history: "history",
  energy: "energy",
  "what-if": "what-if",
  submit: "submit",
  notifications: "notifications",
  help: "help",
});

/** Goes to a page, and waits until what it loads is there. */
export async function arrive(visit, place) {
  await visit.go(place);
  await visit.page.waitForFunction(
    hash => location.hash === hash && document.querySelector("main h1") && !/Loading …/.test(document.body.innerText),
    `#/${place}`,
  );
}
