/** Server-sent events, read from the text of a stream in any chunks. */

export interface SseEvent {
  /** Fields other than `data`, such as `id` and `event`; the last of a name counts. */
  readonly fields: ReadonlyMap<string, string>;
  readonly data: string;
}

export class SseParser {
  #rest = "";
  #fields = new Map<string, string>();
  #data: string[] = [];
  #isFirst = true;

  /** The events that the text completes. */
  push(text: string): SseEvent[] {
    if (this.#isFirst && text) {
      this.#isFirst = false;
      text = text.replace(/^\ufeff/, "");
    }
    // A carriage return at the end may be the first half of a line end.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#line(line));
  }

  /** The last event, which may lack its end. */
  end(): SseEvent[] {
    const last = this.#rest.split("\r").flatMap((line) => this.#line(line));
    this.#rest = "";
    return [...last, ...this.#line("")];
  }

  #line(line: string): SseEvent[] {
    if (line) {
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "data") this.#data.push(value);
      else if (name) this.#fields.set(name, value);
      return [];
    }
    const event = { fields: this.#fields, data: this.#data.join("\n") };
    const isEvent = this.#data.length > 0;
    this.#fields = new Map();
    this.#data = [];
    return isEvent ? [event] : [];
  }
}
