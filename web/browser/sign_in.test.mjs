// Who comes in, and how.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scene } from "./scene.mjs";
import { Visit } from "./visit.mjs";

const set = scene();

/** The browser itself notes each answer that is no success. */
const REFUSED = /status of 401/;

test("the address that carma web prints signs in, and its secret does not stay there", async () => {
  const visit = await set.visit();
  await visit.heading("Server at a glance").waitFor();
  await visit.sees("launches jobs");
  assert.equal(visit.page.url(), `${visit.origin}/#/`);
  await visit.page.reload();
  await visit.sees("launches jobs");
  await visit.end();
});

test("a link makes nobody into somebody else, and one that cannot be read does no harm", async () => {
  const visit = await set.visit();
  await visit.sees("launches jobs");
  const held = () => visit.page.evaluate(() => sessionStorage.getItem("carma-token"));
  const mine = await held();
  await visit.page.evaluate(() => {
    location.hash = "#token=another";
  });
  await visit.page.waitForURL(`${visit.origin}/#/`);
  assert.equal(await held(), mine);
  await visit.page.goto(`${visit.origin}/?again#token=another`);
  await visit.sees("launches jobs");
  assert.equal(await held(), mine);
  await visit.end();
  const stray = await Visit.open(set.browser, `${visit.origin}/#token=%`);
  await stray.heading("Sign in").waitFor();
  // Whose token is refused may come with another.
  await stray.page.evaluate(hash => {
    location.hash = hash;
  }, new URL(set.address).hash);
  await stray.sees("launches jobs");
  await stray.end({ expected: REFUSED });
});

test("without the secret nothing is shown, a wrong one is refused, and the right one opens", async () => {
  const [place, secret] = set.address.split("#token=");
  const visit = await Visit.open(set.browser, place);
  await visit.heading("Sign in").waitFor();
  assert.equal(await visit.page.getByText("launches jobs").count(), 0);
  const token = visit.page.getByLabel("Token");
  await token.fill("0123456789abcdef");
  await token.press("Enter");
  await visit.sees("does not know this token");
  await token.fill(secret);
  await visit.press("Sign in");
  await visit.sees("launches jobs");

  await visit.press("Sign out");
  await visit.heading("Sign in").waitFor();
  await visit.page.reload();
  await visit.heading("Sign in").waitFor();
  await visit.end({ expected: REFUSED });
});
