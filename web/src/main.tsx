// The entry point of the page.

import "./style/index.css";
import { render } from "preact";
import { restoreToken } from "./api/session";
import { App } from "./app";
import { restoreTheme } from "./lib/theme";
import { restoreColours } from "./live/colours";
import { followAddress } from "./router";

restoreTheme();
restoreToken();
restoreColours();
addEventListener("hashchange", restoreToken);
followAddress();

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
