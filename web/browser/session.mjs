// A real browser, and the errors that it reports.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { chromium } from "playwright-core";
import { TIMEOUT } from "./until.mjs";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const DESK = { width: 1280, height: 800 };
export const PHONE = { width: 360, height: 740 };

export const openBrowser = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });

/** A browser window with the page, and the errors in it. */
export class Session {
  #complaints = [];

  constructor(context, page, address) {
    this.context = context;
    this.page = page;
    this.origin = new URL(address).origin;
    this.address = address;
    context.on("request", asked => {
      if (!asked.url().startsWith(`${this.origin}/`) && !asked.url().startsWith("data:")) this.#complain(`asked ${asked.url()}`);
    });
    page.on("console", message => ["error", "warning"].includes(message.type()) && this.#complain(message.text()));
    page.on("pageerror", error => this.#complain(error.stack ?? error.message));
    page.on("dialog", dialog => this.#complain(`a dialog: ${dialog.message()}`));
  }

  static async open(browser, address, { screen = DESK, dark = false } = {}) {
    const context = await browser.newContext({
      viewport: screen,
      colorScheme: dark ? "dark" : "light",
      reducedMotion: "reduce",
      locale: "en-GB",
      timezoneId: "UTC",
    });
    context.setDefaultTimeout(TIMEOUT);
    if (process.env.PAGE) await context.route(/\/($|assets\/)/, route => fulfil(route));
    const session = new Session(context, await context.newPage(), address);
    await session.page.goto(address);
    return session;
  }

  #complain(text) {
    this.#complaints.push(text);
  }

  /** Goes to a page by its address. */
  async go(place) {
    await this.page.evaluate(hash => {
      location.hash = hash;
    }, `#/${place}`);
  }

  /** Waits until this text is visible. */
  async sees(text, within = this.page) {
    await within.getByText(text).first().waitFor();
  }

  heading(name) {
    return this.page.getByRole("heading", { name });
  }

  async press(name, within = this.page) {
    await within.getByRole("button", { name, exact: true }).click();
  }

  /** Closes it. Unexpected errors of the browser fail the test. */
  async end({ expected = undefined } = {}) {
    await this.context.close();
    assert.deepEqual(
      this.#complaints.filter(text => !expected?.test(text)),
      [],
    );
  }
}

/** With PAGE=dist the page is taken from that folder, not from the program: for work on it. */
function fulfil(route) {
  const name = basename(new URL(route.request().url()).pathname) || "index.html";
  const kinds = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", html: "text/html" };
  const contentType = kinds[name.slice(name.lastIndexOf(".") + 1)];
  return route.fulfill({ contentType, body: readFileSync(join(process.env.PAGE ?? "", name)) });
}
