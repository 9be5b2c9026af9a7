// The request for a filled-in form.

import type { JobCommand, Submission } from "../api/schema";
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

/** A page has no shell environment: this is the minimum that programs expect. */
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8" };

function commandFrom({ command, shell }: Filled): JobCommand {
  if (shell) return { script: { text: command.startsWith("#!") ? command : `#!/bin/sh\n${command}\n` } };
  const words = wordsFrom(command);
  if (!words) throw new Error("a quote in the command is not closed");
  if (words.length === 0) throw new Error("say what to run");
  return { program: words };
}

/** Throws for values it cannot read, with a message for the user. */
export function bodyFrom(filled: Filled): Submission {
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
