// Every page there is, with something to show.

/** The pages, for the jobs that `busy` has started; each with what is done there before it is looked at. */
export const places = jobs => ({
  glance: { place: "" },
  gpu: { place: "gpu/s0%2Fgpu1" },
  "gpu-hour": { place: "gpu/s0%2Fgpu3?span=1h" },
  job: { place: `job/${jobs["llama3-8layer"]}`, act: visit => visit.page.getByRole("log").getByText(/epoch/).first().waitFor() },
  "job-failed": { place: `job/${jobs.broken}`, act: visit => visit.press("stderr") },
  "job-waiting": { place: `job/${jobs.waiting}` },
  "job-cancel": { place: `job/${jobs.held}`, act: visit => visit.press("Cancel") },
  queue: { place: "queue" },
  history: { place: "history" },
  energy: { place: "energy?by=job" },
  "what-if": { place: "what-if", act: replay },
  submit: { place: "submit", act: foresee },
  notifications: { place: "notifications", act: visit => visit.press("Add") },
  help: { place: "help" },
});

async function replay(visit) {
  await visit.press("Replay");
  await visit.page.getByRole("row", { name: /measured/ }).waitFor();
}

async function foresee(visit) {
  await visit.page.getByLabel("Command").fill("python train.py --epochs 90");
  await visit.page.getByLabel("Directory").fill("/tmp");
  await visit.page.getByLabel("Memory on each GPU").fill("30GiB");
  await visit.press("What would become of it?");
  await visit.heading("If it were submitted now").waitFor();
}

/** Goes to a page, and waits until what it loads is there. */
export async function arrive(visit, { place, act = async _ => undefined }) {
  await visit.go(place);
  await visit.page.waitForFunction(
    hash => location.hash === hash && document.querySelector("main h1") && !/Loading …/.test(document.body.innerText),
    `#/${place}`,
  );
  await act(visit);
}
