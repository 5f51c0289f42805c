/** OpenAI's chat completions, which many other vendors and local servers speak too. */

import { asText, entries, peek, spoken, words, written, type Fields } from "./shapes.js";
import { answered, assistantTurn, toolTurn, userTurn, withToolNames, type ToolCall, type Turn } from "./turns.js";
import type { Wire } from "./index.js";

const LEADING = new Set<unknown>(["system", "developer"]);

export const openaiChat: Wire = {
  turns: (body) => withToolNames(entries(body["messages"]).map(turnOf)),

  /**
   * The stable part follows what the caller says first, the tail comes before the last message of the user.
   *
   * Both have the role that the caller uses for such messages, as vendors refuse a mixture. A request without a message
   * of the user gets no tail.
   */
  placed(body, stable, tail) {
    const messages = [...entries(body["messages"])];
    const roles = messages.map((message) => peek(message, "role"));
    const found = roles.findIndex((role) => !LEADING.has(role));
    const leading = found < 0 ? roles.length : found;
    const role = leading ? roles[leading - 1] : "system";
    const last = roles.lastIndexOf("user");
    if (tail && last >= 0) messages.splice(last, 0, { role, content: tail });
    if (stable) messages.splice(leading, 0, { role, content: stable });
    return { ...body, messages };
  },

  answer: (payload) =>
    answered(entries(payload["choices"]).map((choice) => turnOf(peek(choice, "message"))), words(payload, "model")),

  streamed(events) {
    let model = "";
    const choices = new Map<number, Choice>();
    for (const event of events) {
      model ||= words(event, "model");
      for (const choice of entries(event["choices"])) {
        const index = Number(peek(choice, "index") ?? 0);
        if (!choices.has(index)) choices.set(index, new Choice());
        choices.get(index)?.add(choice);
      }
    }
    const ordered = [...choices].sort(([one], [other]) => one - other);
    return ordered.flatMap(([, choice]) => answered([turnOf(choice.message())], model, !choice.isFinished));
  },
};

function turnOf(message: unknown): Turn | undefined {
  switch (peek(message, "role")) {
    case "user":
      return userTurn(...written(peek(message, "content")));
    case "assistant":
      return assistantTurn(saidIn(message), toolCalls(message));
    case "tool":
    case "function": {
      const [text, attachments] = written(peek(message, "content"));
      return toolTurn(words(message, "tool_call_id"), text, attachments, words(message, "name"));
    }
    default:
      return undefined;
  }
}

/** A refusal has its own field, and so has the text of an answer that is audio. */
function saidIn(message: unknown): string {
  return spoken(peek(message, "content")) || words(message, "refusal") || words(peek(message, "audio"), "transcript");
}

function toolCalls(message: unknown): ToolCall[] {
  const calls: ToolCall[] = [];
  for (const call of entries(peek(message, "tool_calls"))) {
    const tool = peek(call, "function") ?? peek(call, "custom");
    if (tool === undefined) continue;
    const given = peek(tool, "arguments") ?? peek(tool, "input");
    calls.push({ id: words(call, "id"), name: words(tool, "name"), arguments: asText(given) });
  }
  const legacy = peek(message, "function_call");
  if (legacy) calls.push({ id: "", name: words(legacy, "name"), arguments: asText(peek(legacy, "arguments")) });
  return calls;
}

/** The received chunks of one choice of a stream. */
class Choice {
  isFinished = false;
  readonly #texts = { content: "", refusal: "", transcript: "" };
  readonly #calls = new Map<number, ToolCall>();

  add(choice: unknown): void {
    this.isFinished ||= Boolean(peek(choice, "finish_reason"));
    const delta = peek(choice, "delta");
    this.#texts.content += words(delta, "content");
    this.#texts.refusal += words(delta, "refusal");
    this.#texts.transcript += words(peek(delta, "audio"), "transcript");
    entries(peek(delta, "tool_calls")).forEach((call, position) => {
      this.#call(Number(peek(call, "index") ?? position), call);
    });
    const legacy = peek(delta, "function_call");
    if (legacy) this.#call(-1, { function: legacy });
  }

  message(): Fields {
    const { transcript, ...texts } = this.#texts;
    const calls = [...this.#calls].sort(([one], [other]) => one - other);
    const called = calls.map(([, call]) => ({ id: call.id, function: call }));
    return { role: "assistant", ...texts, audio: { transcript }, tool_calls: called };
  }

  #call(index: number, call: unknown): void {
    const kept = this.#calls.get(index) ?? { id: "", name: "", arguments: "" };
    const tool = peek(call, "function") ?? peek(call, "custom");
    kept.id ||= words(call, "id");
    kept.name += words(tool, "name");
    kept.arguments += words(tool, "arguments") || words(tool, "input");
    this.#calls.set(index, kept);
  }
}
