/** Anthropic's messages. What a model thinks to itself is never read. */

import { asText, entries, peek, spoken, words, written, type Fields } from "./shapes.js";
import { answered, assistantTurn, toolTurn, userTurn, withToolNames, type Turn } from "./turns.js";
import type { Wire } from "./index.js";

export const anthropicMessages: Wire = {
  turns: (body) => withToolNames(entries(body["messages"]).flatMap(turnsOf)),

  /**
   * The stable part is the last block of `system`, the tail the last block of the user's last message.
   *
   * Cache markers of the caller are before them. A request without a message of a user gets no tail.
   */
  placed(body, stable, tail) {
    const messages = [...entries(body["messages"])];
    const last = messages.findLastIndex((message) => turnsOf(message).some((turn) => turn.role === "user"));
    if (tail && last >= 0) {
      const message = messages[last] as Fields;
      messages[last] = { ...message, content: [...blocksOf(message["content"]), textBlock(tail)] };
    }
    return { ...body, ...(stable ? { system: [...blocksOf(body["system"]), textBlock(stable)] } : {}), messages };
  },

  answer: (payload) => answered(turnsOf(payload), words(payload, "model")),

  streamed(events) {
    let model = "";
    let isFinished = false;
    const blocks = new Map<unknown, Block>();
    for (const event of events) {
      if (event["type"] === "message_start") model = words(event["message"], "model");
      if (event["type"] === "content_block_start") blocks.set(event["index"], new Block(event["content_block"]));
      if (event["type"] === "content_block_delta") blocks.get(event["index"])?.add(event["delta"]);
      if (event["type"] === "message_stop") isFinished = true;
    }
    const ordered = [...blocks].sort(([one], [other]) => Number(one) - Number(other));
    const content = ordered.map(([, block]) => block.whole());
    return answered(turnsOf({ role: "assistant", content }), model, !isFinished);
  },
};

/** A user's message holds results of tools, what a person wrote, or both; each is a turn. */
function turnsOf(message: unknown): Turn[] {
  const content = peek(message, "content");
  const blocks = entries(content);
  if (peek(message, "role") === "assistant") {
    const calls = blocks.filter((block) => words(block, "type").endsWith("tool_use"));
    const turn = assistantTurn(
      spoken(content),
      calls.map((call) => ({ id: words(call, "id"), name: words(call, "name"), arguments: asText(peek(call, "input")) })),
    );
    return turn ? [turn] : [];
  }
  if (peek(message, "role") !== "user") return [];
  const results = blocks.filter(isResult);
  const own = typeof content === "string" ? content : blocks.filter((block) => !isResult(block));
  const said = userTurn(...written(own));
  const turns = results.map((block) => toolTurn(words(block, "tool_use_id"), ...written(peek(block, "content"))));
  return said ? [...turns, said] : turns;
}

function isResult(block: unknown): boolean {
  return words(block, "type").endsWith("tool_result");
}

function textBlock(text: string): Fields {
  return { type: "text", text };
}

/** Content as blocks. The vendor takes no empty ones. */
function blocksOf(content: unknown): readonly unknown[] {
  if (typeof content === "string") return content ? [textBlock(content)] : [];
  return entries(content);
}

/** A content block, and the parts received since its start. */
class Block {
  #text = "";
  #input = "";

  constructor(private readonly start: unknown) {}

  add(delta: unknown): void {
    this.#text += words(delta, "text");
    this.#input += words(delta, "partial_json");
  }

  whole(): Fields {
    const block = { ...(this.start as Fields) };
    return {
      ...block,
      ...(block["type"] === "text" ? { text: words(block, "text") + this.#text } : {}),
      ...(this.#input ? { input: parsed(this.#input) } : {}),
    };
  }
}

/** The input in the form of a message, so that it reads the same later; the received part if it was interrupted. */
function parsed(partial: string): unknown {
  try {
    return JSON.parse(partial);
  } catch {
    return partial;
  }
}
