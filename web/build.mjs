// Builds the page into dist/, which is committed and embedded in the program. The same sources give the same bytes.
//
//   node build.mjs            build
//   node build.mjs --check    build elsewhere and compare with dist/
//   node build.mjs --tests    build the tests and run them
//   node build.mjs --serve    build, and serve dist/ before a manager (see dev/serve.mjs)

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const DIST = join(HERE, "dist");
const FILES = ["app.css", "app.js", "favicon.svg", "index.html"];
const LARGEST = 300_000;

async function bundle(folder) {
  mkdirSync(folder, { recursive: true });
  await build({
    absWorkingDir: HERE,
    entryPoints: { app: "src/main.tsx" },
    outdir: folder,
    bundle: true,
    minify: true,
    format: "esm",
    target: ["es2022"],
    jsx: "automatic",
    jsxImportSource: "preact",
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
  });
  for (const file of ["favicon.svg", "index.html"]) copyFileSync(join(HERE, "src", file), join(folder, file));
}

/** All files for the browser. */
function compressedSize(folder) {
  return FILES.reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file)), { level: 9 }).length, 0);
}

function reportSize(folder) {
  const size = compressedSize(folder);
  console.log(`${(size / 1000).toFixed(1)} kB compressed, of ${LARGEST / 1000} kB allowed`);
  if (size > LARGEST) throw new Error("the page is too large");
}

async function inTemporaryFolder(use) {
  const folder = mkdtempSync(join(tmpdir(), "carma-web-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function check() {
  await inTemporaryFolder(async folder => {
    await bundle(folder);
    const stale = FILES.filter(file => !readFileSync(join(folder, file)).equals(readFileSync(join(DIST, file))));
    const unknown = readdirSync(DIST).filter(file => !FILES.includes(file));
    if (stale.length + unknown.length > 0)
      throw new Error(`dist is not what the sources give: ${[...stale, ...unknown].join(", ")}; npm run build`);
    reportSize(folder);
  });
}

async function tests() {
  const status = await inTemporaryFolder(async folder => {
    const names = readdirSync(join(HERE, "test")).filter(name => name.endsWith(".test.ts"));
    await build({
      absWorkingDir: HERE,
      entryPoints: names.map(name => join("test", name)),
      outdir: folder,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      platform: "node",
      format: "esm",
      logLevel: "warning",
    });
    const built = readdirSync(folder).map(name => join(folder, name));
    return spawnSync(process.execPath, ["--test", ...built], { stdio: "inherit" }).status;
  });
  process.exitCode = status ?? 1;
}

const [mode] = process.argv.slice(2);
if (mode === "--check") await check();
else if (mode === "--tests") await tests();
else {
  await bundle(DIST);
  reportSize(DIST);
  if (mode === "--serve") await import("./dev/serve.mjs");
}
