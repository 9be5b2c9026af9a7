// The last lines of a job's log, as plain text.

// Escape sequences of terminals.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

/** A line as a terminal would leave it: without escapes, and only what was last written over it. */
export function plain(line: string): string {
  const text = line.replace(ESCAPES, "").replace(/\r+$/, "");
  return text.slice(text.lastIndexOf("\r") + 1).replace(CONTROLS, "");
}

/** Keeps the last lines of a text that arrives in pieces. */
export class LogTail {
  readonly lines: string[] = [];
  #rest = "";
  /** Number of lines that were dropped. */
  dropped = 0;

  constructor(
    readonly most: number,
    readonly longest = 2000,
  ) {}

  /** The last line, which is not complete. */
  get rest(): string {
    return this.#shortened(this.#rest);
  }

  add(text: string): void {
    const parts = (this.#rest + text).split("\n");
    this.#rest = parts.pop() ?? "";
    // A progress bar that never ends its line must not grow without limit.
    if (this.#rest.length > 4 * this.longest) this.#rest = this.#rest.slice(-2 * this.longest);
    for (const part of parts) this.lines.push(this.#shortened(part));
    const over = this.lines.length - this.most;
    if (over > 0) {
      this.lines.splice(0, over);
      this.dropped += over;
    }
  }

  #shortened(line: string): string {
    const text = plain(line);
    return text.length > this.longest ? `${text.slice(0, this.longest)} …` : text;
  }
}
