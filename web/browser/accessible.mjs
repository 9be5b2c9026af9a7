// Accessibility checks by axe.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** The violations, each with its place. */
export async function violations(page) {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(AXE);
  const found = await page.evaluate(tags => globalThis.axe.run({ runOnly: { type: "tag", values: tags } }), RULES);
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html} ${failureSummary}`),
  );
}
