import assert from "node:assert/strict";
import { test } from "node:test";
import type { GpuStay, GpuTimeline, RecentSamples } from "../src/api/schema";
import { heightAt, packed, reservedSteps, stacked } from "../src/lib/stack";
import { fromSamples, fromSpans, fromTimeline, meanOver, runs, type Track } from "../src/lib/track";

const stay = (job: number, launched: number, ended: number | null, reserved = 100): GpuStay => ({
  attempt: { job, number: 1 },
  name: null,
  user: "ada",
  launched,
  ended,
  ending: ended === null ? null : { class: "succeeded", brief: "succeeded", text: "succeeded" },
  reserved,
  memory: [{ at: launched, memory: reserved / 2 }],
});

const looks = (memory: number[], tenants: (number | null)[][]): RecentSamples => ({
  device: "s0/gpu0",
  at: memory.map((_, index) => index),
  memory,
  utilisation: { smact: memory.map((_, index) => (index % 2 === 0 ? index / 10 : null)), smocc: memory.map(() => null) },
  power: memory.map((_, index) => index),
  tenants: tenants.map((has, place) => ({ attempt: { job: place + 1, number: 1 }, memory: has })),
});

test("joined points keep the most memory with its parts, and the mean load", () => {
  const thin = fromSamples(
    looks(
      [10, 30, 20, 5],
      [
        [10, 30, null, null],
        [null, null, 20, 5],
      ],
    ),
    2,
  );
  assert.deepEqual(thin.at, [0, 2]);
  assert.deepEqual(thin.memory, [30, 20]);
  assert.deepEqual(
    thin.tenants.map(({ memory }) => memory),
    [
      [30, null],
      [null, 20],
    ],
  );
  assert.deepEqual(
    [thin.power, thin.utilisation.smact, thin.utilisation.smocc],
    [
      [0.5, 2.5],
      [0, 0.2],
      [null, null],
    ],
  );
});

test("parts never add up to more than there was, however far points are joined", () => {
  const full = looks(
    [40, 40, 40],
    [
      [40, null, null],
      [null, 40, null],
      [null, null, 40],
    ],
  );
  const { memory, tenants } = fromSamples(full, 1);
  assert.deepEqual([memory, tenants.map(tenant => tenant.memory[0])], [[40], [40, null, null]]);
  assert.equal(fromSamples(full, 3).at.length, 3);
});

test("a gap parts the curve", () => {
  assert.deepEqual(runs([0, 1, 2, 50, 51, 52, 53]), [
    [0, 3],
    [3, 7],
  ]);
  assert.deepEqual([runs([]), runs([4])], [[], [[0, 1]]]);
});

test("memory of a minute is the mean of its steps, and nothing before and after the stay", () => {
  const memory = [10, 20, 40].map(at => ({ at, memory: 10 * at }));
  const over = (ended: number | null, from: number, to: number) => meanOver({ launched: 10, ended, memory }, from, to);
  assert.deepEqual([over(60, 0, 10), over(60, 10, 20), over(60, 10, 30), over(60, 50, 70), over(60, 60, 80)], [null, 100, 150, 200, null]);
  assert.equal(over(null, 90, 100), 400);
});

test("a timeline has a job's memory only while it was there", () => {
  const minutes = [1, 2, 3].map(minute => ({
    device: "s0/gpu0",
    minute,
    readings: 60,
    memory_used: 70,
    utilisation: minute === 2 ? { smact: 0.5, drama: 0.25 } : { smact: 0.5 },
    power: 100,
  }));
  const timeline: GpuTimeline = { since: 0, until: 240_000, minutes, stays: [stay(1, 150_000, 180_000)] };
  const { at, utilisation, tenants } = fromTimeline(timeline, 100, 0, 240_000);
  assert.deepEqual(at, [90_000, 150_000, 210_000]);
  assert.deepEqual(utilisation, { smact: [0.5, 0.5, 0.5], drama: [null, 0.25, null] });
  assert.deepEqual(tenants[0]?.memory, [null, 25, null]);
  const part = { ...timeline, minutes: timeline.minutes.slice(0, 2) };
  assert.deepEqual(fromTimeline(part, 100, 80_000, 130_000).at, [100_000, 125_000], "no point is outside of the period");
});

test("layers are stacked, with other processes on top", () => {
  const seen: Track = {
    at: [0, 1],
    utilisation: {},
    power: [null, null],
    memory: [60, 50],
    tenants: [
      { attempt: { job: 1, number: 1 }, memory: [10, 20] },
      { attempt: { job: 2, number: 1 }, memory: [null, 30] },
      { attempt: { job: 3, number: 1 }, memory: [null, null] },
    ],
  };
  assert.deepEqual(
    stacked(seen).map(({ attempt, edges }) => [attempt?.job, edges]),
    [
      [
        1,
        [
          [0, 10],
          [0, 20],
        ],
      ],
      [
        2,
        [
          [10, 10],
          [20, 50],
        ],
      ],
      [
        undefined,
        [
          [10, 60],
          [50, 50],
        ],
      ],
    ],
  );
});

test("a layer reaches from the point before it has any height to the point after", () => {
  const at = [0, 1, 2, 3, 4, 5];
  const nothing = at.map(() => null);
  const memory = [null, null, 5, 6, null, null];
  const tenants = [{ attempt: { job: 1, number: 1 }, memory }];
  const track: Track = { at, utilisation: {}, power: nothing, memory, tenants };
  const [layer, ...others] = stacked(track);
  assert.deepEqual(others, []);
  assert.ok(layer);
  assert.deepEqual([layer.start, layer.edges.map(([, upper]) => upper)], [1, [0, 5, 6, 0]]);
  assert.deepEqual(
    at.map(index => heightAt(layer, index)),
    [0, 0, 5, 6, 0, 0],
  );
});

test("reservations add up from launch to end", () => {
  assert.deepEqual(reservedSteps([stay(1, 5, 20), stay(2, 10, null, 50), stay(3, 90, null)], 10, 40), [
    { at: 10, reserved: 150 },
    { at: 20, reserved: 50 },
    { at: 40, reserved: 50 },
  ]);
});

test("bars that overlap get rows of their own", () => {
  const rows = packed([stay(3, 20, null), stay(1, 0, 10), stay(2, 5, 15), stay(4, 12, 18)]);
  assert.deepEqual(
    rows.map(({ stay: { attempt }, row }) => [attempt.job, row]),
    [
      [1, 0],
      [2, 1],
      [4, 0],
      [3, 0],
    ],
  );
});

test("spans are drawn in their middle, and the last only as far as it has come", () => {
  const utilisation = { smact: [0.5, null, 0.25], drama: [] };
  const track = fromSpans({ attempt: { job: 1, number: 1 }, device: "s0/gpu0", since: 1000, span: 10, utilisation }, 23_000);
  assert.deepEqual(track.at, [6000, 16_000, 22_000]);
  assert.deepEqual(track.utilisation.smact, [0.5, null, 0.25]);
  assert.deepEqual(fromSpans({ attempt: { job: 1, number: 1 }, device: "s0/gpu0", since: 0, span: 5, utilisation: {} }, 9).at, []);
});
