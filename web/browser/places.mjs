// All pages, each with data.

/** The pages, with the jobs of `busy`, and an action on some of them. */
export const places = jobs => ({
  glance: { place: "" },
  gpu: { place: "gpu/s0%2Fgpu1" },
  "gpu-hour": { place: "gpu/s0%2Fgpu3?span=1h" },
  job: { place: `job/${jobs["llama3-8layer"]}`, act: session => session.page.getByRole("log").getByText(/epoch/).first().waitFor() },
  "job-failed": { place: `job/${jobs.broken}`, act: session => session.sees("Last lines of stderr:") },
  "job-waiting": { place: `job/${jobs.waiting}` },
  "job-cancel": { place: `job/${jobs.held}`, act: session => session.press("Cancel") },
  queue: { place: "queue" },
  history: { place: "history" },
  array: { place: `history?array=${jobs.array}` },
  users: { place: "users" },
  user: { place: "user/0" },
  energy: { place: "energy?by=job" },
  "what-if": { place: "what-if", act: replay },
  submit: { place: "submit", act: preview },
  notifications: { place: "notifications", act: session => session.press("Add") },
  "submit-empty": { place: "submit", act: session => session.press("Submit") },
  help: { place: "help" },
});

async function replay(session) {
  await session.press("Replay");
  await session.page.getByRole("row", { name: /measured/ }).waitFor();
}

async function preview(session) {
  await session.page.getByLabel("Command").fill("python train.py --epochs 90");
  await session.page.getByLabel("Directory").fill("/tmp");
  await session.page.getByLabel("Memory per GPU").fill("30GiB");
  await session.press("Preview placement");
  await session.heading("Preview").waitFor();
}

/** Opens a page, and waits until its data is loaded. */
export async function openPage(session, { place, act = async _ => undefined }) {
  await session.go(place);
  await session.page.waitForFunction(
    hash => location.hash === hash && document.querySelector("main h1") && !/Loading …/.test(document.body.innerText),
    `#/${place}`,
  );
  await act(session);
}
