// Values that users write into forms and addresses.

const MEMORY: Record<string, number> = {
  m: 1,
  mb: 1,
  mib: 1,
  g: 1024,
  gb: 1024,
  gib: 1024,
  t: 1024 ** 2,
  tb: 1024 ** 2,
  tib: 1024 ** 2,
};
const SPANS: Record<string, number> = { s: 1, sec: 1, m: 60, min: 60, h: 3600, d: 86_400 };

/** Memory in MiB from "12GiB"; undefined: not a size. A number without its unit is none: 7 may mean GiB or MiB. */
export function memoryFrom(text: string): number | undefined {
  const [, number, unit] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text) ?? [];
  const factor = MEMORY[(unit ?? "").toLowerCase()];
  return number && factor ? Math.ceil(Number(number) * factor) : undefined;
}

/** Seconds from "12h", "1h 30m" or "90" (seconds); undefined: not a duration. */
export function secondsFrom(text: string): number | undefined {
  const trimmed = text.trim().toLowerCase();
  if (/^\d+$/.test(trimmed)) return Number(trimmed);
  if (!/^(\d+(\.\d+)?\s*(s|sec|m|min|h|d)\s*)+$/.test(trimmed)) return undefined;
  const parts = trimmed.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/g);
  return [...parts].reduce((sum, [, number, unit]) => sum + Number(number) * (SPANS[unit ?? ""] ?? 0), 0);
}

/** Words of a command line with shell quotes; undefined: a quote is not closed. */
export function wordsFrom(line: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at] ?? "";
    if (quote) {
      if (letter === quote) quote = "";
      else if (letter === "\\" && quote === '"' && /["\\$`]/.test(line[at + 1] ?? "")) word += line[++at] ?? "";
      else word += letter;
    } else if (/\s/.test(letter)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word ??= "";
      if (letter === "'" || letter === '"') quote = letter;
      else if (letter === "\\") word += line[++at] ?? "";
      else word += letter;
    }
  }
  if (quote) return undefined;
  if (word !== undefined) words.push(word);
  return words;
}

/** A command line from its words, quoted as a shell needs it. */
export function quoted(words: string[]): string {
  return words.map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" ");
}

/** A decoded part of an address; with a stray percent sign it stays as it is. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
