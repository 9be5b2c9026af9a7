// Signing in.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Session } from "./session.mjs";
import { scene } from "./setup.mjs";

const set = scene();

/** The browser logs each failed response. */
const REFUSED = /status of 401/;

test("the address that carma web prints signs in, and its secret does not stay there", async () => {
  const session = await set.session();
  await session.heading("Overview").waitFor();
  await session.sees("active, up");
  assert.equal(session.page.url(), `${session.origin}/#/`);
  await session.page.reload();
  await session.sees("active, up");
  await session.end();
});

test("a link does not change the signed-in user, and an unreadable one does no harm", async () => {
  const session = await set.session();
  await session.sees("active, up");
  const held = () => session.page.evaluate(() => sessionStorage.getItem("carma-token"));
  const mine = await held();
  await session.page.evaluate(() => {
    location.hash = "#token=another";
  });
  await session.page.waitForURL(`${session.origin}/#/`);
  assert.equal(await held(), mine);
  await session.page.goto(`${session.origin}/?again#token=another`);
  await session.sees("active, up");
  assert.equal(await held(), mine);
  await session.end();
  const stray = await Session.open(set.browser, `${session.origin}/#token=%`);
  await stray.heading("Sign in").waitFor();
  // After a refused token, another one works.
  await stray.page.evaluate(hash => {
    location.hash = hash;
  }, new URL(set.address).hash);
  await stray.sees("active, up");
  await stray.end({ expected: REFUSED });
});

test("without the secret nothing is shown, a wrong one is refused, and the right one opens", async () => {
  const [place, secret] = set.address.split("#token=");
  const session = await Session.open(set.browser, place);
  await session.heading("Sign in").waitFor();
  assert.equal(await session.page.getByText("active, up").count(), 0);
  const token = session.page.getByLabel("Token");
  await token.fill("0123456789abcdef");
  await token.press("Enter");
  await session.sees("does not accept this token");
  await token.fill(secret);
  await session.press("Sign in");
  await session.sees("active, up");

  await session.press("Sign out");
  await session.heading("Sign in").waitFor();
  await session.page.reload();
  await session.heading("Sign in").waitFor();
  await session.end({ expected: REFUSED });
});
