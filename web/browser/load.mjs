// A server at work: jobs of several kinds and fates, as a research group has them.

import { until } from "./until.mjs";

const LONG = 100_000;

/** Names, what they train, the memory they ask for, and for how long in emulated seconds; unset: as long as it takes. */
const TRAINING = [
  { name: "inception", workload: "inception_imagenet_bs128", ask: "18500MiB", seconds: LONG },
  { name: "resnet50", workload: "resnet50_imagenet_bs128", ask: "14GiB", seconds: LONG },
  { name: "vgg16", workload: "vgg16_imagenet_bs128", ask: "22GiB", seconds: LONG },
  { name: "bert-base", workload: "bert_base_wiki_bs32", ask: "21GiB", seconds: 400 },
];
/** It asks for a fifth of what it needs: it runs out of memory, and is brought back with more. */
export const TOO_SMALL = { name: "llama3-8layer", workload: "llama3_width_8layer_wiki_bs1", ask: "5700MiB", seconds: LONG };
const SMALL = [
  { name: "resnet18-cifar", workload: "resnet18_cifar100_bs32_50e", ask: "900MiB", seconds: LONG },
  { name: "mobilenet-sweep", workload: "mobilenet_cifar100_bs64_50e", ask: "700MiB", seconds: 300 },
  { name: "dlrm-criteo", workload: "dlrm_criteo_bs32768", ask: "1500MiB", seconds: LONG },
];

function train(lab, { name, workload, ask, seconds }) {
  return lab.submit("--name", name, "--workdir", "/tmp", "--mem", ask, "--", ...lab.train({ workload, seconds }));
}

/** Gives the manager of four GPUs all that a page may have to show, and the numbers of the jobs by their names. */
export async function busy(lab, patience = undefined) {
  const jobs = {};
  const start = async kind => {
    jobs[kind.name] = await train(lab, kind);
    return jobs[kind.name];
  };
  jobs.broken = await lab.submit("--gpus", "0", "--name", "preprocess", "--", "sh", "-c", "echo 'no such file: /data/index' >&2; exit 3");
  for (const kind of TRAINING) await lab.reaches(await start(kind), "running");
  const crashing = await start(TOO_SMALL);
  await until("it ran out of memory", async () => (await lab.ask(`/v1/jobs/${crashing}`)).attempts.some(({ verdict }) => verdict));
  for (const kind of SMALL) await start(kind);
  jobs.held = await lab.submit("--name", "nightly-evaluation", "--hold", "--", "true");
  jobs.waiting = await lab.submit("--name", "gpt2-large", "--gpus", "4", "--exclusive", "--mem", "28GiB", "--", "true");
  jobs.cancelled = await lab.submit("--name", "wrong-branch", "--hold", "--", "true");
  await lab.carma("cancel", `${jobs.cancelled}`);
  await lab.reaches(crashing, "running", patience);
  return jobs;
}
