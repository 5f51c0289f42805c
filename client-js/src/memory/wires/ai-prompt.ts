/** The prompts, answers and stream parts between Vercel's AI SDK and its providers (language models of version 3). */

import { asText, entries, peek, spoken, words, type Fields } from "./shapes.js";
import { answered, assistantTurn, toolTurn, userTurn, withToolNames, type ToolCall, type Turn } from "./turns.js";
import type { Wire } from "./index.js";

/** A request is `{ prompt }`, an answer `{ content, model }`. */
export const aiPrompt: Wire = {
  turns: (body) => withToolNames(entries(body["prompt"]).flatMap(turnsOf)),

  /**
   * The stable part follows the leading system messages, the tail is the last text of the user's last message: some
   * providers refuse system messages in between.
   */
  placed(body, stable, tail) {
    const prompt = [...entries(body["prompt"])];
    const last = prompt.findLastIndex((message) => peek(message, "role") === "user");
    if (tail && last >= 0) {
      const message = prompt[last] as Fields;
      prompt[last] = { ...message, content: [...entries(message["content"]), { type: "text", text: tail }] };
    }
    const found = prompt.findIndex((message) => peek(message, "role") !== "system");
    if (stable) prompt.splice(found < 0 ? prompt.length : found, 0, { role: "system", content: stable });
    return { ...body, prompt };
  },

  answer: (payload) => answered([assistantOf(payload["content"])], words(payload, "model")),

  streamed(events) {
    let model = "";
    let isIncomplete = true;
    const content: Record<string, unknown>[] = [];
    const texts = new Map<unknown, Record<string, unknown>>();
    for (const event of events) {
      const kind = event["type"];
      if (kind === "response-metadata") model = words(event, "modelId") || model;
      if (kind === "finish") isIncomplete = false;
      if (kind === "text-start" || kind === "reasoning-start") {
        const part = { type: kind === "text-start" ? "text" : "reasoning", text: "" };
        texts.set(event["id"], part);
        content.push(part);
      }
      const part = kind === "text-delta" ? texts.get(event["id"]) : undefined;
      if (part) part["text"] = words(part, "text") + words(event, "delta");
      if (kind === "tool-call") content.push(event);
    }
    isIncomplete ||= events.some((event) => event["type"] === "error");
    return answered([assistantOf(content)], model, isIncomplete);
  },
};

function turnsOf(message: unknown): Turn[] {
  const content = peek(message, "content");
  switch (peek(message, "role")) {
    case "user":
      return [userOf(entries(content))].filter((turn) => turn !== undefined);
    case "assistant":
      return [assistantOf(content)].filter((turn) => turn !== undefined);
    case "tool":
      return entries(content).filter((part) => peek(part, "type") === "tool-result").map(resultOf);
    default:
      return [];
  }
}

function userOf(parts: readonly unknown[]): Turn | undefined {
  const files = parts.filter((part) => peek(part, "type") === "file");
  const kinds = files.map((file) => (words(file, "mediaType").startsWith("image/") ? "image" : "file"));
  const texts = parts.filter((part) => peek(part, "type") === "text").map((part) => words(part, "text"));
  return userTurn(texts.filter(Boolean).join("\n"), kinds);
}

function assistantOf(content: unknown): Turn | undefined {
  const calls = entries(content).filter((part) => peek(part, "type") === "tool-call");
  return assistantTurn(spoken(content), calls.map(callOf));
}

function callOf(part: unknown): ToolCall {
  return { id: words(part, "toolCallId"), name: words(part, "toolName"), arguments: asText(peek(part, "input")) };
}

function resultOf(part: unknown): Turn {
  const output = peek(part, "output");
  const value = peek(output, "value") ?? peek(output, "reason");
  const parts = peek(output, "type") === "content" ? entries(value) : undefined;
  const texts = parts?.map((one) => words(one, "text")).filter(Boolean).join("\n");
  const others = parts?.map((one) => words(one, "type")).filter((kind) => kind !== "text") ?? [];
  return toolTurn(words(part, "toolCallId"), texts ?? asText(value), others, words(part, "toolName"));
}
