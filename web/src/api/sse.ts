// Server-sent events, read from a stream of text.

export interface ServerEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Takes text in pieces and emits whole events. */
export class EventParser {
  #rest = "";

  constructor(readonly emit: (event: ServerEvent) => void) {}

  add(text: string): void {
    this.#rest += text;
    // A carriage return at the end may be the first half of a line break.
    const usable = this.#rest.endsWith("\r") ? this.#rest.slice(0, -1) : this.#rest;
    const blocks = usable.replace(/\r\n?/g, "\n").split("\n\n");
    this.#rest = (blocks.pop() ?? "") + (usable.length < this.#rest.length ? "\r" : "");
    for (const block of blocks) this.#take(block);
  }

  #take(block: string): void {
    const found: ServerEvent = { id: null, event: "message", data: "" };
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") data.push(value);
      else if (field === "event") found.event = value;
      else if (field === "id") found.id = value;
    }
    if (data.length > 0) this.emit({ ...found, data: data.join("\n") });
  }
}
