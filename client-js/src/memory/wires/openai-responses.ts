/**
 * OpenAI's Responses.
 *
 * Each item is a turn, because callers send items back one by one, and in part. Reasoning is never read. If the vendor
 * stores the conversation, a request contains only new items.
 */

import { asText, entries, peek, spoken, words, written, type Fields } from "./shapes.js";
import { answered, assistantTurn, toolTurn, userTurn, withToolNames, type Turn } from "./turns.js";
import type { Wire } from "./index.js";

/** The fields with the arguments of the various kinds of tool calls. */
const ARGUMENTS = ["arguments", "input", "action", "operation", "queries", "code"];

/** The events that bring the whole answer, and whether it broke off. A limit on its length is no break. */
const ENDS = new Map([
  ["response.completed", false],
  ["response.incomplete", false],
  ["response.failed", true],
]);

export const openaiResponses: Wire = {
  turns: (body) => withToolNames(itemsOf(body["input"]).map(turnOf)),

  /**
   * The stable part follows the instructions, the tail comes before the last message of the user.
   *
   * A request that brings no message of the user gets no tail; the vendor has what went before.
   */
  placed(body, stable, tail) {
    const instructions = words(body, "instructions");
    const items = itemsOf(body["input"]);
    const last = items.findLastIndex((item) => isMessage(item) && peek(item, "role") === "user");
    const role = items.some((item) => peek(item, "role") === "developer") ? "developer" : "system";
    return {
      ...body,
      ...(stable ? { instructions: instructions ? `${instructions}\n\n${stable}` : stable } : {}),
      ...(tail && last >= 0 ? { input: items.toSpliced(last, 0, { type: "message", role, content: tail }) } : {}),
    };
  },

  answer: (payload) => answered(entries(payload["output"]).map(turnOf), words(payload, "model")),

  streamed(events) {
    let model = "";
    let isIncomplete = true;
    let whole: Turn[] = [];
    const items = new Map<number, Item>();
    for (const event of events) {
      const kind = words(event, "type");
      const index = event["output_index"];
      const response = event["response"];
      model ||= words(response, "model");
      if (ENDS.has(kind)) {
        whole = entries(peek(response, "output")).map(turnOf).filter((turn) => turn !== undefined);
        isIncomplete = ENDS.get(kind) ?? true;
      } else if (typeof index === "number") {
        if (!items.has(index)) items.set(index, new Item());
        items.get(index)?.add(kind, event);
      }
    }
    const ordered = [...items].sort(([one], [other]) => one - other);
    return answered(whole.length ? whole : ordered.map(([, item]) => turnOf(item.whole())), model, isIncomplete);
  },
};

function itemsOf(value: unknown): readonly unknown[] {
  return typeof value === "string" ? [{ role: "user", content: value }] : entries(value);
}

function isMessage(item: unknown): boolean {
  return ["", "message"].includes(words(item, "type"));
}

function turnOf(item: unknown): Turn | undefined {
  const kind = words(item, "type");
  if (kind.endsWith("_call")) {
    const name = words(item, "name") || kind.slice(0, -"_call".length);
    const given = ARGUMENTS.map((field) => peek(item, field)).find((value) => value !== undefined && value !== null);
    return assistantTurn("", [{ id: callId(item), name, arguments: asText(given) }]);
  }
  if (kind.endsWith("_call_output")) return toolTurn(callId(item), ...outputOf(peek(item, "output")));
  if (!isMessage(item)) return undefined;
  if (peek(item, "role") === "user") return userTurn(...written(peek(item, "content")));
  return peek(item, "role") === "assistant" ? assistantTurn(spoken(peek(item, "content")), []) : undefined;
}

function callId(item: unknown): string {
  return words(item, "call_id") || words(item, "id");
}

/** Text, content parts, or what a shell printed; a screenshot is one part. */
function outputOf(output: unknown): [string, string[]] {
  const parts = entries(output);
  if (parts.some((part) => peek(part, "stdout") !== undefined)) {
    return [parts.flatMap((part) => [words(part, "stdout"), words(part, "stderr")]).filter(Boolean).join("\n"), []];
  }
  return written(typeof output === "object" && !Array.isArray(output) ? [output] : output);
}

/** An output item, and the parts received before it was done. */
class Item {
  #item: Fields | undefined;
  #isDone = false;
  #text = "";
  #arguments = "";

  add(kind: string, event: Fields): void {
    switch (kind) {
      case "response.output_item.added":
      case "response.output_item.done":
        this.#item = event["item"] as Fields;
        this.#isDone = kind.endsWith("done");
        break;
      case "response.output_text.delta":
      case "response.refusal.delta":
        this.#text += words(event, "delta");
        break;
      case "response.function_call_arguments.delta":
      case "response.mcp_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        this.#arguments += words(event, "delta");
    }
  }

  whole(): Fields {
    const item = this.#item ?? { type: "message", role: "assistant" };
    if (this.#isDone) return item;
    const name = words(item, "type") === "custom_tool_call" ? "input" : "arguments";
    return {
      ...item,
      ...(this.#text ? { content: this.#text } : {}),
      ...(this.#arguments ? { [name]: this.#arguments } : {}),
    };
  }
}
