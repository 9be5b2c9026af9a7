import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { JOB_COLOURS } from "../src/lib/job_colours";

type Three = [number, number, number];

// As people see who lack one kind of cone (Machado, Oliveira and Fernandes 2009), in linear light.
const SIGHTS: Record<string, Three[]> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};
const XYZ: Three[] = [
  [0.4124, 0.3576, 0.1805],
  [0.2126, 0.7152, 0.0722],
  [0.0193, 0.1192, 0.9505],
];
const WHITE: Three = [0.9505, 1, 1.089];

const by = (rows: Three[], [x, y, z]: Three) => rows.map(([a, b, c]) => a * x + b * y + c * z) as Three;

function light(hex: string): Three {
  const parts = [1, 3, 5].map(at => Number.parseInt(hex.slice(at, at + 2), 16) / 255);
  return parts.map(part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as Three;
}

function lab(colour: Three): Three {
  const curve = (part: number) => (part > 0.008856 ? Math.cbrt(part) : 7.787 * part + 16 / 116);
  const [x, y, z] = by(XYZ, colour).map((part, place) => curve(part / (WHITE[place] ?? 1))) as Three;
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const seen = (hex: string, sight: Three[]) => lab(by(sight, light(hex)).map(part => Math.min(1, Math.max(0, part))) as Three);
const apart = (a: Three, b: Three) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
const brightness = (hex: string) => by(XYZ, light(hex))[1];
const contrast = (a: string, b: string) => {
  const [dark, bright] = [brightness(a), brightness(b)].sort((x, y) => x - y) as [number, number];
  return (bright + 0.05) / (dark + 0.05);
};

const css = readFileSync("src/style/colours.css", "utf8");
const themes = ["light", "dark"].map((theme, place) => {
  const pairs = css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g);
  const colours = new Map([...pairs].map(([, name = "", ...both]) => [name, both[place] ?? ""]));
  return { theme, colour: (name: string) => colours.get(name) ?? assert.fail(`no colour ${name}`) };
});
const jobs = Array.from({ length: JOB_COLOURS }, (_, place) => `job-${place}`);
const metrics = Array.from({ length: 4 }, (_, place) => `metric-${place}`);

test("jobs and metrics differ for every kind of colour vision", () => {
  for (const { theme, colour } of themes) {
    for (const [sight, rows] of Object.entries(SIGHTS)) {
      for (const names of [jobs, metrics]) {
        const all = names.map(name => ({ name, as: seen(colour(name), rows) }));
        for (const [place, one] of all.entries()) {
          for (const other of all.slice(place + 1))
            assert.ok(apart(one.as, other.as) > 20, `${one.name}, ${other.name}, ${theme}, ${sight}`);
        }
      }
    }
  }
});

test("jobs stand out from the ground, and words on them and on marks can be read", () => {
  for (const { theme, colour } of themes) {
    for (const name of jobs) {
      assert.ok(theme === "dark" || lab(light(colour(name)))[0] >= 30, `${name} is nearly black`);
      assert.ok(contrast(colour(name), colour("raised")) >= 4.5, `${name} ${theme}`);
      for (const ground of ["ground", "sunken"]) assert.ok(contrast(colour(name), colour(ground)) >= 3, `${name} on ${ground} ${theme}`);
    }
    for (const tone of ["good", "bad", "memory", "busy", "waiting", "neutral"]) {
      assert.ok(contrast(colour(tone), colour(`${tone}-ground`)) >= 4.5, `${tone} ${theme}`);
    }
    for (const ground of ["ground", "raised"]) assert.ok(contrast(colour("quiet"), colour(ground)) >= 4.5, `quiet on ${ground} ${theme}`);
  }
});
