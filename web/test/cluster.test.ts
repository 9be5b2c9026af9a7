import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pilot, PoolDetail, ServerDetail } from "../src/api/schema";
import { pilotCounts, pilotState, poolFacts, poolState, serverState } from "../src/lib/cluster";

const server: ServerDetail = { id: 1, node: "gn1", connected: true, gpus: 2, jobs: 0, joined: 0 };
const pilot: Pilot = { name: "carma-1", pool: "gpu", state: "pending", requested: 0 };
const pool: PoolDetail = {
  name: "gpu",
  settings: { gpus: 1, time: 3600, max: 4, backlog: 2, idle: 300, patience: 60 },
  pilots: [],
  note: "no job waits for it",
};

test("a server is connected, draining with the reason, or not connected", () => {
  assert.equal(serverState(server).word, "connected");
  assert.deepEqual(serverState({ ...server, draining: "it ends soon" }), { tone: "memory", word: "draining", reason: "it ends soon" });
  assert.equal(serverState({ ...server, draining: "it ends soon", connected: false }).word, "not connected");
});

test("a pool says why it requests no pilot", () => {
  assert.equal(poolState(pool).reason, "no job waits for it");
  assert.equal(poolState({ ...pool, note: null }).reason, "requests the next pilot");
  assert.equal(poolState({ ...pool, paused: { by: "root" } }).reason, "by root");
  assert.equal(poolState({ ...pool, paused: { failures: "no such partition" } }).reason, "after failures: no such partition");
  assert.equal(poolState({ ...pool, paused: { by: "root" }, removed: true }).word, "being removed");
});

test("pilots are counted by what they are", () => {
  const pilots: Pilot[] = [
    pilot,
    { ...pilot, state: "requesting" },
    { ...pilot, state: "connected", server: 3 },
    { ...pilot, returned: true },
  ];
  assert.equal(pilotCounts({ ...pool, pilots }), "1 connected, 2 pending, maximum 4");
  assert.deepEqual(
    pilots.map(each => pilotState(each).word),
    ["pending", "requesting", "connected", "returned"],
  );
  assert.equal(pilotState({ ...pilot, state: "connected", server: 3 }).reason, "as s3");
});

test("only settings that are set are listed", () => {
  const names = (each: PoolDetail) => poolFacts(each).map(([name]) => name);
  assert.deepEqual(names(pool), ["Partition", "Each pilot", "Pilots in the queue", "Returned", "Requests a pilot"]);
  const full = {
    ...pool,
    settings: { ...pool.settings, account: "ml", gpu_type: "a100" },
    seen_memory: 40_960,
    last_failure: "it was killed",
  };
  assert.ok(["Account", "GPU memory", "Last failure"].every(name => names(full).includes(name)));
  assert.equal(poolFacts(full)[1]?.[1], "1 GPU a100 for 1 h");
});
