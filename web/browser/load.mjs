// A busy server: jobs of several kinds and outcomes.

import { until } from "./until.mjs";

const LONG = 100_000;

/** Name, workload, requested memory, and emulated seconds. */
const TRAINING = [
  { name: "inception", workload: "inception_imagenet_bs128", ask: "18500MiB", seconds: LONG },
  { name: "xception", workload: "xception_imagenet_bs128", ask: "22GiB", seconds: LONG, progress: 0.37 },
  { name: "vgg16", workload: "vgg16_imagenet_bs128", ask: "22GiB", seconds: LONG },
  { name: "bert-base", workload: "bert_base_wiki_bs32", ask: "21GiB", seconds: 400 },
];
/** It requests a fifth of what it needs. Beside none of the jobs above is there room for it, so it runs out of memory and is restarted with more. */
export const TOO_SMALL = { name: "llama3-8layer", workload: "llama3_width_8layer_wiki_bs1", ask: "5700MiB", seconds: LONG };
const SMALL = [
  { name: "resnet18-cifar", workload: "resnet18_cifar100_bs32_50e", ask: "900MiB", seconds: LONG },
  { name: "mobilenet-sweep", workload: "mobilenet_cifar100_bs64_50e", ask: "700MiB", seconds: 300 },
  { name: "dlrm-criteo", workload: "dlrm_criteo_bs32768", ask: "1500MiB", seconds: LONG },
];

/** `progress` is what the job reports when it starts. */
function train(manager, { name, workload, ask, seconds, progress = undefined }) {
  const command = manager.train({ workload, seconds });
  const script = `echo ${progress} > "$CARMA_PROGRESS"; exec ${command.join(" ")}`;
  return manager.submit("--name", name, "--workdir", "/tmp", "--mem", ask, "--", ...(progress ? ["sh", "-c", script] : command));
}

/** Starts jobs of all kinds on four GPUs, and returns their numbers by name. */
export async function busy(manager, timeout = undefined) {
  const jobs = {};
  const start = async kind => {
    jobs[kind.name] = await train(manager, kind);
    return jobs[kind.name];
  };
  jobs.broken = await manager.submit(
    "--gpus",
    "0",
    "--name",
    "preprocess",
    "--",
    "sh",
    "-c",
    "echo 'no such file: /data/index' >&2; exit 3",
  );
  for (const kind of TRAINING) await manager.reaches(await start(kind), "running");
  const crashing = await start(TOO_SMALL);
  await until("it ran out of memory", async () => (await manager.get(`/v1/jobs/${crashing}`)).attempts.some(({ verdict }) => verdict));
  for (const kind of SMALL) await start(kind);
  jobs.held = await manager.submit("--name", "nightly-evaluation", "--hold", "--", "true");
  jobs.waiting = await manager.submit("--name", "gpt2-large", "--gpus", "4", "--exclusive", "--mem", "28GiB", "--", "true");
  jobs.cancelled = await manager.submit("--name", "wrong-branch", "--hold", "--", "true");
  await manager.carma("cancel", `${jobs.cancelled}`);
  jobs.array = await manager.submit(
    "--name",
    "lr-sweep",
    "--gpus",
    "0",
    "--array",
    "1-6",
    "--",
    "sh",
    "-c",
    "test $CARMA_ARRAY_INDEX -ne 3",
  );
  await manager.submit("--name", "ablation", "--mem", "30GiB", "--gpus", "2", "--array", "1-40", "--", "true");
  await manager.reaches(crashing, "running", timeout);
  return jobs;
}
