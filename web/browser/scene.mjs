// What every file of tests needs: a manager, a browser, and the way from one to the other.

import { after, before } from "node:test";
import { Lab } from "./lab.mjs";
import { openBrowser, Visit } from "./visit.mjs";

/** Set up before the tests of a file, and taken away after them. `prepare` gives the manager something to show. */
export function scene(options = {}, prepare = async _ => undefined) {
  const set = {
    lab: undefined,
    browser: undefined,
    address: "",
    /** Somebody comes to the page, signed in. */
    visit: options => Visit.open(set.browser, set.address, options),
  };
  before(async () => {
    [set.lab, set.browser] = await Promise.all([Lab.start(options), openBrowser()]);
    set.address = await set.lab.web();
    await prepare(set.lab);
  });
  after(() => Promise.all([set.browser?.close(), set.lab?.stop()]));
  return set;
}
