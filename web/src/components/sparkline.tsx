// A small curve of the last minutes, from 0 to 1.

import { area, line } from "d3-shape";
import type { Column } from "../lib/track";

const WIDTH = 100;
const HEIGHT = 24;

export function Sparkline({ values, label }: { values: Column; label: string }) {
  const x = (index: number) => (values.length > 1 ? (index / (values.length - 1)) * WIDTH : WIDTH);
  const y = (value: number | null) => HEIGHT - 1 - Math.min(1, value ?? 0) * (HEIGHT - 2);
  const known = (value: number | null) => value !== null;
  const curve = line<number | null>()
    .defined(known)
    .x((_, index) => x(index))
    .y(y);
  const below = area<number | null>()
    .defined(known)
    .x((_, index) => x(index))
    .y0(HEIGHT)
    .y1(y);
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="below" d={below(values) ?? ""} />
      <path class="curve" d={curve(values) ?? ""} vector-effect="non-scaling-stroke" />
    </svg>
  );
}
