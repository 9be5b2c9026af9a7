// Serves dist/ on a loopback port, and forwards everything else to a manager's socket: for work on the page.
//
//   CARMA_SOCKET=FOLDER/carma.sock PORT=7390 npm run dev

import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { fileURLToPath } from "node:url";

const DIST = new URL("../dist/", import.meta.url);
const FILES = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/assets/app.js": ["app.js", "text/javascript; charset=utf-8"],
  "/assets/app.css": ["app.css", "text/css; charset=utf-8"],
  "/assets/favicon.svg": ["favicon.svg", "image/svg+xml"],
};
// As strict as the manager is.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const socketPath = process.env.CARMA_SOCKET;
const port = Number(process.env.PORT ?? 7390);
if (!socketPath) throw new Error("CARMA_SOCKET names the manager's socket");

createServer((asked, answer) => {
  const file = FILES[asked.url.split("?")[0]];
  if (file) {
    answer.writeHead(200, { "content-type": file[1], "content-security-policy": POLICY, "cache-control": "no-cache" });
    answer.end(readFileSync(fileURLToPath(new URL(file[0], DIST))));
    return;
  }
  const passed = request({ socketPath, method: asked.method, path: asked.url, headers: asked.headers }, came => {
    answer.writeHead(came.statusCode, came.headers);
    came.pipe(answer);
  });
  passed.on("error", error => {
    if (!answer.headersSent) answer.writeHead(502, { "content-type": "text/plain" });
    answer.end(`${error.message}\n`);
  });
  answer.on("close", () => passed.destroy());
  asked.pipe(passed);
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/`));
