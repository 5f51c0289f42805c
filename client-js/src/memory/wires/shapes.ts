/**
 * Reads values of requests and answers, which are JSON of unknown shape.
 *
 * Nothing here changes its arguments or throws: unreadable values are treated as missing.
 */

export type Fields = Readonly<Record<string, unknown>>;

const TEXTS = new Set(["text", "input_text", "output_text"]);

/** A field of an object; undefined of anything else. */
export function peek(item: unknown, name: string): unknown {
  return typeof item === "object" && item !== null ? (item as Fields)[name] : undefined;
}

/** A field that is text; "" if it is anything else. */
export function words(item: unknown, name: string): string {
  const value = peek(item, name);
  return typeof value === "string" ? value : "";
}

/** The items of an array; none of anything else. */
export function entries(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Arguments of a tool: as they are, or as JSON in the form of Python's, with a space after commas and colons. */
export function asText(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  // Texts in JSON contain no line ends, so these are those of the indentation.
  return JSON.stringify(value, null, 1).replace(/,\n */g, ", ").replace(/\n */g, "");
}

/** The text of a content part; undefined if it is not text. */
function partText(part: unknown): string | undefined {
  const kind = words(part, "type");
  if (TEXTS.has(kind)) return words(part, "text");
  return kind === "refusal" ? words(part, "refusal") : undefined;
}

/** The text of an assistant. Adjacent parts are joined; parts with something in between are paragraphs. */
export function spoken(content: unknown): string {
  if (typeof content === "string") return content;
  const runs: string[] = [];
  let isTouching = false;
  for (const part of entries(content)) {
    const text = partText(part);
    if (text !== undefined) {
      if (isTouching) runs[runs.length - 1] += text;
      else runs.push(text);
    }
    isTouching = text !== undefined;
  }
  return runs.filter(Boolean).join("\n\n");
}

/** The texts of a user or a tool, one a line, and the types of other parts. */
export function written(content: unknown): [text: string, attachments: string[]] {
  if (typeof content === "string") return [content, []];
  const texts: string[] = [];
  const attachments: string[] = [];
  for (const part of entries(content)) {
    const text = partText(part);
    const kind = words(part, "type");
    if (text !== undefined) texts.push(text);
    else if (kind) attachments.push(kind.replace(/^input_/, "").replace(/_url$/, ""));
  }
  return [texts.filter(Boolean).join("\n"), attachments];
}
