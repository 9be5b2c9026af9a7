// The request for a filled-in form, and what is wrong with it.

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

/** A message for each field that has to be corrected. */
export type Problems = Partial<Record<keyof Filled, string>>;

/** A page has no shell environment: this is the minimum that programs expect. */
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8" };

const isCount = (text: string): boolean => /^\d+$/.test(text.trim());
const isWhole = (text: string): boolean => /^-?\d+$/.test(text.trim());

export function problemsOf({ command, directory, gpus, memory, priority, limit, shell }: Filled): Problems {
  const problems: Problems = {};
  if (!command.trim()) problems.command = "Enter the command to run.";
  else if (!shell && !wordsFrom(command)) problems.command = "A quote is not closed.";
  if (!directory.trim()) problems.directory = "Enter the directory in which the job runs, for example /home/me/project.";
  else if (!directory.trim().startsWith("/")) problems.directory = "Enter the full path, which begins with /.";
  if (!isCount(gpus)) problems.gpus = "Enter a number: 0, 1, 2 …";
  if (memory.trim() && memoryFrom(memory) === undefined) problems.memory = "Enter a size with its unit: 12GiB or 800MiB.";
  if (!isWhole(priority)) problems.priority = "Enter a whole number.";
  if (limit.trim() && secondsFrom(limit) === undefined) problems.limit = "Enter a time: 12h, 90min or 1h 30min.";
  return problems;
}

function commandFrom({ command, shell }: Filled): JobCommand {
  if (shell) return { script: { text: command.startsWith("#!") ? command : `#!/bin/sh\n${command}\n` } };
  return { program: wordsFrom(command) ?? [] };
}

/** The request for a form without problems. */
export function bodyFrom(filled: Filled): Submission {
  const memory = memoryFrom(filled.memory);
  const limit = filled.limit.trim() ? secondsFrom(filled.limit) : undefined;
  return {
    job: {
      ...(filled.name.trim() ? { name: filled.name.trim() } : {}),
      command: commandFrom(filled),
      directory: filled.directory.trim(),
      environment: ENVIRONMENT,
      resources: {
        gpus: Number(filled.gpus),
        exclusive: filled.exclusive,
        ...(memory === undefined ? {} : { memory }),
        ...(limit === undefined ? {} : { time_limit: limit }),
      },
      schedule: { priority: Number(filled.priority), hold: filled.hold },
    },
  };
}
