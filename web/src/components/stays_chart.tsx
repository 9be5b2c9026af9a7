// Attempts on a GPU over time: a bar for each, marked by how it ended.

import type { GpuStay } from "../api/schema";
import { endingTone, type Tone } from "../lib/colour";
import { count, duration, jobNumber, memory, UNKNOWN } from "../lib/format";
import { packed } from "../lib/stack";
import { exactly } from "../lib/time";
import { useJobColour } from "../live/colours";
import { toJob } from "../router";
import { TimeChart } from "./chart";

const ROW = 24;
const BAR = 18;
/** Width of a letter in pixels, about. */
const LETTER = 6.6;
/** Height of the frame around the rows. */
const AROUND = 30;

const MARKS: Record<Tone, string> = { good: "✓", bad: "✕", memory: "▲", neutral: "■", busy: "", waiting: "" };
const TONES: Tone[] = ["good", "memory", "bad", "neutral"];
/** A legend does not list more ends of one tone. */
const LISTED = 3;

/** For each tone, the ends that have it. */
function legendOf(stays: GpuStay[]): [Tone, string][] {
  const briefs = (tone: Tone) => new Set(stays.flatMap(({ ending }) => (ending && endingTone(ending) === tone ? [ending.brief] : [])));
  return TONES.flatMap((tone): [Tone, string][] => {
    const all = [...briefs(tone)];
    return all.length > 0 ? [[tone, all.slice(0, LISTED).join(", ") + (all.length > LISTED ? ", …" : "")]] : [];
  });
}

const numberOf = ({ attempt, array }: GpuStay) => jobNumber(attempt.job, array);

function words(stay: GpuStay, until: number): string {
  const span = duration(((stay.ended ?? until) - stay.launched) / 1000);
  return `Job ${numberOf(stay)}${stay.name ? ` ${stay.name}` : ""} of ${stay.user}, attempt ${stay.attempt.number}, ${span}, ${stay.ending?.brief ?? (stay.ended ? "ended" : "running")}`;
}

export function StaysChart({ stays, since, until }: { stays: GpuStay[]; since: number; until: number }) {
  const jobColour = useJobColour();
  const placed = packed(stays);
  const rows = Math.max(1, ...placed.map(({ row }) => row + 1));
  return (
    <TimeChart
      title="Jobs"
      summary={`${count(stays.length, "attempt")} in this period`}
      at={[]}
      since={since}
      until={until}
      top={rows}
      ticks={[]}
      unit={String}
      height={rows * ROW + AROUND}
      legend={legendOf(stays).map(([tone, name]) => ({
        key: tone,
        name: `${MARKS[tone]} ${name}`,
        colour: `var(--${tone})`,
        value: () => "",
      }))}
      table={{
        columns: ["Job", "Attempt", "Name", "User", "Started", "Ended", "Reserved", "Result"],
        rows: () =>
          stays.map(stay => [
            numberOf(stay),
            String(stay.attempt.number),
            stay.name ?? UNKNOWN,
            stay.user,
            exactly(stay.launched),
            stay.ended ? exactly(stay.ended) : "running",
            memory(stay.reserved),
            stay.ending?.brief ?? UNKNOWN,
          ]),
      }}
      draw={plane =>
        placed.map(({ stay, row }) => {
          const left = plane.x(Math.max(stay.launched, since));
          const right = plane.x(Math.min(stay.ended ?? until, until));
          const width = Math.max(2, right - left);
          const labels = [`${numberOf(stay)} ${stay.name ?? ""}`.trim(), numberOf(stay)];
          const tone = stay.ending ? endingTone(stay.ending) : undefined;
          const room = Math.floor((width - (tone ? 22 : 8)) / LETTER);
          // The accessible name contains the label, so labels are never cut off.
          const label = labels.find(({ length }) => length <= room);
          return (
            <a
              key={`${stay.attempt.job} ${stay.attempt.number}`}
              class="stay"
              href={toJob(stay.attempt.job)}
              aria-label={words(stay, until)}
            >
              <title>{words(stay, until)}</title>
              <rect
                x={left}
                y={row * ROW + 6}
                width={width}
                height={BAR}
                rx="3"
                style={{ fill: jobColour(stay.attempt.job) ?? "var(--neutral)" }}
              />
              {label && (
                <BarLabel x={left + 5} top={row * ROW + 6}>
                  {label}
                </BarLabel>
              )}
              {tone && <EndMark tone={tone} right={left + width} top={row * ROW + 6} room={width} />}
            </a>
          );
        })
      }
    />
  );
}

/** The mark at the end of a bar. */
function EndMark({ tone, right, top, room }: { tone: Tone; right: number; top: number; room: number }) {
  const narrow = room < 40;
  const size = narrow ? Math.min(4, room / 2) : 15;
  return (
    <>
      <rect class={`ending ${tone}`} x={right - size} y={top} width={size} height={BAR} rx="2" />
      {!narrow && (
        <BarLabel x={right - size / 2} top={top} middle>
          {MARKS[tone]}
        </BarLabel>
      )}
    </>
  );
}

/** Text on a bar. */
function BarLabel({ x, top, middle = false, children }: { x: number; top: number; middle?: boolean; children: string }) {
  return (
    <text x={x} y={top + BAR / 2} dy="0.34em" text-anchor={middle ? "middle" : "start"}>
      {children}
    </text>
  );
}
