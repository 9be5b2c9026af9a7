// What is sent for a form that was filled in.

import type { SubmitBody } from "../api/types";
import { memoryFrom, secondsFrom, wordsFrom } from "./parse";

export interface Filled {
  command: string;
  name: string;
  directory: string;
  gpus: string;
  memory: string;
  priority: string;
  limit: string;
  shell: boolean;
  exclusive: boolean;
  hold: boolean;
}

/** A page knows nothing of anybody's shell: what every program expects is given. */
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8" };

function commandFrom({ command, shell }: Filled): SubmitBody["job"]["command"] {
  if (shell) return { script: { text: command.startsWith("#!") ? command : `#!/bin/sh\n${command}\n` } };
  const words = wordsFrom(command);
  if (!words) throw new Error("a quote in the command is not closed");
  if (words.length === 0) throw new Error("say what to run");
  return { program: words };
}

/** Refuses what it cannot read, with words for people. */
export function bodyFrom(filled: Filled): SubmitBody {
  const memory = filled.memory.trim() ? memoryFrom(filled.memory) : null;
  if (memory === undefined) throw new Error(`${filled.memory} is no memory: write 12GiB or 800MiB`);
  const limit = filled.limit.trim() ? secondsFrom(filled.limit) : null;
  if (limit === undefined) throw new Error(`${filled.limit} is no time: write 12h, 90min or 1h 30min`);
  return {
    job: {
      ...(filled.name.trim() ? { name: filled.name.trim() } : {}),
      command: commandFrom(filled),
      directory: filled.directory.trim(),
      environment: ENVIRONMENT,
      resources: {
        gpus: Number(filled.gpus),
        exclusive: filled.exclusive,
        ...(memory === null ? {} : { memory }),
        ...(limit === null ? {} : { time_limit: limit }),
      },
      schedule: { priority: Number(filled.priority), hold: filled.hold },
    },
  };
}
