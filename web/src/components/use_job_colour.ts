// The colours of jobs in what is shown together.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { type JobColours, jobColour } from "../lib/job_colours";

/** Of those within it; unset: each has its own. */
export const Colours = createContext<JobColours>(new Map());

export function useJobColour(): (id: number) => string {
  const colours = useContext(Colours);
  return id => jobColour(id, colours);
}
