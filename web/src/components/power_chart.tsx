// Power that a GPU drew.

import { power } from "../lib/format";
import { exactly } from "../lib/time";
import type { Track } from "../lib/track";
import { TimeChart } from "./chart";
import { Curve } from "./utilisation_chart";

export function PowerChart({ track, since, until }: { track: Track; since: number; until: number }) {
  const most = track.power.reduce<number>((top, value) => Math.max(top, value ?? 0), 0);
  return (
    <TimeChart
      title="Power"
      summary={`Peak ${power(most)}`}
      at={track.at}
      since={since}
      until={until}
      top={Math.max(100, Math.ceil(most / 50) * 50)}
      unit={power}
      legend={[{ key: "power", name: "Power", colour: "var(--power)", value: index => power(track.power[index]) }]}
      table={{ columns: ["Time", "Power"], rows: () => track.at.map((at, index) => [exactly(at), power(track.power[index])]) }}
      draw={plane => <Curve at={track.at} values={track.power} plane={plane} colour="var(--power)" />}
    />
  );
}
