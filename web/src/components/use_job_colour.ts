// The colours of jobs that are shown together.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { type JobColours, jobColour } from "../lib/job_colours";

/** Colours of the jobs within; unset: each job has its own. */
export const Colours = createContext<JobColours>(new Map());

export function useJobColour(): (id: number) => string {
  const colours = useContext(Colours);
  return id => jobColour(id, colours);
}
