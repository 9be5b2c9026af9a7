// Setup of all tests: a manager, a browser, and a session.

import { after, before } from "node:test";
import { openBrowser, Session } from "./session.mjs";
import { TestManager } from "./test_manager.mjs";

/** Starts all before the tests of a file, and stops it after them. `prepare` submits jobs. */
export function scene(options = {}, prepare = async _ => undefined) {
  const set = {
    manager: undefined,
    browser: undefined,
    address: "",
    /** Opens the page, signed in. */
    session: options => Session.open(set.browser, set.address, options),
  };
  before(async () => {
    [set.manager, set.browser] = await Promise.all([TestManager.start(options), openBrowser()]);
    set.address = await set.manager.web();
    await prepare(set.manager);
  });
  after(() => Promise.all([set.browser?.close(), set.manager?.stop()]));
  return set;
}
