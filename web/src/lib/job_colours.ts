// A job has one colour on all pages. Jobs that are shown together differ, while there are enough colours.

/** Number of colours in colours.css. */
export const JOB_COLOURS = 12;

/** The colour index of each job, in the order in which they were given. */
export type JobColours = ReadonlyMap<number, number>;

/** A job in a picture, with the jobs it must differ from even where there are too few colours for all. */
export interface Shown {
  job: number;
  beside: ReadonlySet<number>;
}

/** The colours with those of all jobs of a picture. No job changes its colour. */
export function withColours(known: JobColours, picture: readonly Shown[]): JobColours {
  if (picture.every(({ job }) => known.has(job))) return known;
  const colours = new Map(known);
  const inPicture = picture.map(({ job }) => job);
  for (const { job, beside } of picture) {
    if (colours.has(job)) continue;
    const order = leastRecent(colours);
    const free = (others: Iterable<number>) => {
      const taken = new Set([...others].map(other => colours.get(other)));
      return order.find(colour => !taken.has(colour));
    };
    colours.set(job, free(inPicture) ?? free(beside) ?? order[0] ?? 0);
  }
  return colours;
}

/** All colours, those that were given the longest time ago first: jobs of one time differ. */
function leastRecent(colours: JobColours): number[] {
  const given = [...new Set([...colours.values()].reverse())].reverse();
  const unused = Array.from({ length: JOB_COLOURS }, (_, colour) => colour).filter(colour => !given.includes(colour));
  return [...unused, ...given];
}

/** Jobs on GPUs now. Those on one GPU differ first. */
export function onGpus(gpus: readonly (readonly number[])[]): Shown[] {
  const beside = new Map<number, Set<number>>();
  for (const jobs of gpus) for (const job of jobs) beside.set(job, new Set([...(beside.get(job) ?? []), ...jobs]));
  return [...beside].sort(([a], [b]) => a - b).map(([job, others]) => ({ job, beside: others }));
}

interface Stay {
  attempt: { job: number };
  launched: number;
  ended?: number | null;
}

/** Jobs on one GPU over time. Those at the same time differ first. */
export function overTime(stays: readonly Stay[]): Shown[] {
  return stays.map(stay => ({
    job: stay.attempt.job,
    beside: new Set(stays.filter(other => overlap(stay, other)).map(({ attempt }) => attempt.job)),
  }));
}

const endOf = ({ ended }: Stay): number => ended ?? Number.POSITIVE_INFINITY;
const overlap = (one: Stay, other: Stay): boolean => one.launched < endOf(other) && other.launched < endOf(one);
