import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ago,
  carbon,
  change,
  count,
  deviceName,
  duration,
  energies,
  energy,
  figures,
  jobNumber,
  memory,
  money,
  percent,
  power,
} from "../src/lib/format";

test("memory is in MiB below one GiB, and in GiB above", () => {
  assert.deepEqual([0, 634, 1023, 1024, 19_868, null].map(memory), ["0 GiB", "634 MiB", "1023 MiB", "1.0 GiB", "19.4 GiB", "–"]);
});

test("durations have their two largest units", () => {
  const spans = [0.4, 59.6, 61, 3600, 3 * 3600 + 12 * 60, 86_400 + 7200, undefined].map(duration);
  assert.deepEqual(spans, ["0 s", "1 min", "1 min 1 s", "1 h", "3 h 12 min", "1 d 2 h", "–"]);
});

test("how long ago something was has one part", () => {
  assert.deepEqual(
    [0, 61_000, 8_000_000].map(late => ago(0, late)),
    ["just now", "1 min ago", "2 h ago"],
  );
});

test("energy, power, money and carbon have units", () => {
  assert.deepEqual([3.6e6, 1800, 1.2e9].map(energy), ["1 kWh", "0.50 Wh", "333 kWh"]);
  assert.deepEqual([power(213.4), percent(0.555), carbon(1250), carbon(80)], ["213 W", "56 %", "1.25 kg", "80 g"]);
  assert.deepEqual([money(0.0312, "EUR"), money(12.3, "EUR")], ["0.031 EUR", "12.30 EUR"]);
});

test("figures keep three that matter, and whole numbers whole", () => {
  assert.deepEqual([2, 0.1234, 12.34, 123.4, 12_345.6].map(figures), ["2", "0.12", "12.3", "123", "12,346"]);
});

test("changes have a sign, counts a noun, devices no server", () => {
  assert.deepEqual([1.25, 0.9, 1.001].map(change), ["+25 %", "−10 %", "±0 %"]);
  assert.deepEqual(
    [count(1, "job"), count(2000, "job"), deviceName("s0/gpu3/mig1"), deviceName("s1/gpu0")],
    ["1 job", "2,000 jobs", "gpu3/mig1", "s1/gpu0"],
  );
});

test("a job of an array is named by its place there", () => {
  assert.deepEqual([jobNumber(9, null), jobNumber(9, { array: 8, index: 2 })], ["9", "8_2"]);
});

test("energies in one column have one unit", () => {
  assert.deepEqual([184, 86.5, 2.82, 0.001].map(wh => wh * 3600).map(energies(184 * 3600)), ["184 Wh", "86.5 Wh", "2.82 Wh", "< 0.01 Wh"]);
  assert.deepEqual([12_340, 86.5, 0].map(wh => wh * 3600).map(energies(12_340 * 3600)), ["12.3 kWh", "0.09 kWh", "0 kWh"]);
});
