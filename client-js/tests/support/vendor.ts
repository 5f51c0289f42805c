/**
 * OpenAI and Anthropic on loopback, speaking their wire formats, plain and as server-sent events.
 *
 *     const vendor = await startVendor();
 *     vendor.says.push({ text: "Hello" });              // or { calls: [...] }; { stopsAfter: 2 } breaks a stream
 */

import { ScriptedServer, type ReceivedRequest, type Reply } from "./scripted-server.js";

export interface Said {
  text?: string;
  calls?: { id: string; name: string; arguments: object }[];
  /** A stream is cut after so many events. */
  stopsAfter?: number;
  /** A stream waits for this before it goes on after so many events. */
  pause?: { after: number; until: Promise<unknown> };
  /** An error of the vendor, instead of an answer. */
  status?: number;
}

type Event = Record<string, unknown>;

export interface Vendor {
  readonly url: string;
  /** The requests of models, in order. */
  readonly requests: ReceivedRequest[];
  readonly says: Said[];
  readonly server: ScriptedServer;
}

/** @param port 0 for a free one. */
export async function startVendor(port = 0): Promise<Vendor> {
  const says: Said[] = [];
  const server = await new ScriptedServer((request) => replyTo(request, says.shift() ?? { text: "Noted." })).start(port);
  return { url: server.url, requests: server.requests, says, server };
}

function replyTo(request: ReceivedRequest, said: Said): Reply {
  if (said.status) return { status: said.status, body: { error: { message: "It does not work", type: "error" } } };
  const path = request.path.split("?")[0] ?? "";
  const wire = WIRES[path];
  if (!wire) return { status: 404, body: { error: { message: "Not found" } } };
  const answer = wire.answer(said);
  if (!request.body.stream) return { body: answer };
  const events = wire.events(answer);
  const lines = events.map((event) => `${wire.isNamed ? `event: ${event["type"]}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
  if (!wire.isNamed) lines.push("data: [DONE]\n\n");
  const parts = async function* () {
    for (const [index, line] of lines.entries()) {
      if (index === said.pause?.after) await said.pause.until;
      if (index === said.stopsAfter) return;
      yield line;
    }
  };
  const cut = said.stopsAfter === undefined ? {} : { hangsUp: "after" as const };
  return { headers: { "Content-Type": "text/event-stream" }, parts: parts(), ...cut };
}

interface VendorWire {
  isNamed: boolean;
  answer(said: Said): Event;
  events(answer: any): Event[];
}

function pieces(text: string): string[] {
  return text.match(/.{1,5}/gsu) ?? [];
}

const chat: VendorWire = {
  isNamed: false,
  answer: ({ text, calls = [] }) => ({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1767225600,
    model: "gpt-scripted",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text ?? null,
          ...(calls.length
            ? {
                tool_calls: calls.map((call) => ({
                  id: call.id,
                  type: "function",
                  function: { name: call.name, arguments: JSON.stringify(call.arguments) },
                })),
              }
            : {}),
        },
        finish_reason: calls.length ? "tool_calls" : "stop",
      },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  }),
  events: ({ choices, ...head }) => {
    const [{ message, finish_reason }] = choices;
    const chunk = (delta: object, reason: string | null = null) => ({
      ...head,
      usage: null,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
    const calls = (message.tool_calls ?? []).flatMap((call: any, index: number) => [
      chunk({ tool_calls: [{ ...call, index, function: { name: call.function.name, arguments: "" } }] }),
      ...pieces(call.function.arguments).map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]);
    const texts = pieces(message.content ?? "").map((content) => chunk({ content }));
    return [chunk({ role: "assistant", content: "" }), ...texts, ...calls, chunk({}, finish_reason)];
  },
};

const responses: VendorWire = {
  isNamed: true,
  answer: ({ text, calls = [] }) => ({
    id: "resp_1",
    object: "response",
    created_at: 1767225600,
    status: "completed",
    model: "gpt-scripted",
    output: [
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Thinking" }] },
      ...(text
        ? [{ type: "message", id: "msg_1", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] }]
        : []),
      ...calls.map((call, index) => ({
        type: "function_call",
        id: `fc_${index}`,
        call_id: call.id,
        status: "completed",
        name: call.name,
        arguments: JSON.stringify(call.arguments),
      })),
    ],
    usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  }),
  events: (answer) => {
    const events: Event[] = [{ type: "response.created", response: { ...answer, status: "in_progress", output: [] } }];
    answer.output.forEach((item: any, output_index: number) => {
      const at = { item_id: item.id, output_index };
      events.push({ type: "response.output_item.added", output_index, item: { ...item, content: [], arguments: "" } });
      if (item.type === "message") {
        const [part] = item.content;
        events.push({ type: "response.content_part.added", ...at, content_index: 0, part: { ...part, text: "" } });
        for (const delta of pieces(part.text)) events.push({ type: "response.output_text.delta", ...at, content_index: 0, delta });
        events.push({ type: "response.output_text.done", ...at, content_index: 0, text: part.text });
        events.push({ type: "response.content_part.done", ...at, content_index: 0, part });
      }
      events.push({ type: "response.output_item.done", output_index, item });
    });
    events.push({ type: "response.completed", response: answer });
    return events.map((event, sequence_number) => ({ ...event, sequence_number }));
  },
};

const anthropic: VendorWire = {
  isNamed: true,
  answer: ({ text, calls = [] }) => ({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-scripted",
    content: [
      ...(text ? [{ type: "text", text }] : []),
      ...calls.map((call) => ({ type: "tool_use", id: call.id, name: call.name, input: call.arguments })),
    ],
    stop_reason: calls.length ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
  }),
  events: (answer) => {
    const events: Event[] = [{ type: "message_start", message: { ...answer, content: [], stop_reason: null } }, { type: "ping" }];
    answer.content.forEach((block: any, index: number) => {
      const isText = block.type === "text";
      events.push({ type: "content_block_start", index, content_block: { ...block, ...(isText ? { text: "" } : { input: {} }) } });
      for (const piece of pieces(isText ? block.text : JSON.stringify(block.input))) {
        const delta = isText ? { type: "text_delta", text: piece } : { type: "input_json_delta", partial_json: piece };
        events.push({ type: "content_block_delta", index, delta });
      }
      events.push({ type: "content_block_stop", index });
    });
    const { stop_reason, stop_sequence, usage } = answer;
    events.push({ type: "message_delta", delta: { stop_reason, stop_sequence }, usage: { output_tokens: usage.output_tokens } });
    return [...events, { type: "message_stop" }];
  },
};

const WIRES: Record<string, VendorWire> = {
  "/v1/chat/completions": chat,
  "/v1/responses": responses,
  "/v1/messages": anthropic,
};
