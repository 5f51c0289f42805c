/** Model calls are read, changed and stored exactly as the Python client does it. */

import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { messageOf, prefaced } from "../src/memory/messages.js";
import { wireOf } from "../src/memory/wires/index.js";
import { PYTHON, ROOT } from "./support/start-service.js";

interface ModelCall {
  url: string;
  body: Record<string, unknown>;
  answer?: Record<string, unknown>;
  events?: Record<string, unknown>[];
}

const [CHAT, RESPONSES, MESSAGES] = ["/chat/completions", "/responses", "/v1/messages?beta=true"];
const QUESTION = { role: "user", content: "What is the weather in Lisbon?" };
const PICTURE = { role: "user", content: [{ type: "text", text: "This?" }, { type: "image_url", image_url: {} }, { type: "text", text: "or that?" }] };
const TOOL = { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city": "Lisbon"}' } };
const CUSTOM = { id: "call_2", type: "custom", custom: { name: "run", input: "ls" } };
const USE = { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Lisboa,\n{ \"é\": [] }", days: [1, 2.5, null, true], none: {}, list: [], deep: [{ a: [{}] }] } };

const chatDelta = (delta: object, finish_reason: string | null = null, index = 0) => ({
  model: "m",
  choices: [{ index, delta, finish_reason }],
});

const CALLS: ModelCall[] = [
  {
    url: CHAT!,
    body: {
      model: "m",
      messages: [
        { role: "developer", content: "Be kind" },
        QUESTION,
        { role: "assistant", content: "Let me see.", tool_calls: [TOOL, CUSTOM] },
        { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "Sunny" }, { type: "text", text: "warm" }] },
        { role: "tool", tool_call_id: "call_2", content: "" },
      ],
    },
    answer: {
      model: "m",
      choices: [
        { message: { role: "assistant", content: "Sunny.", tool_calls: [TOOL] } },
        { message: { role: "assistant", content: null, refusal: "No." } },
        { message: { role: "assistant", content: null, audio: { transcript: "Heard" } } },
        { message: { role: "assistant", content: "", function_call: { name: "old", arguments: "{}" } } },
      ],
    },
    events: [
      chatDelta({ role: "assistant", content: "Sun" }),
      chatDelta({ content: "ny" }),
      chatDelta({ tool_calls: [{ index: 0, id: "call_1", function: { name: "get_weather", arguments: '{"ci' } }] }),
      chatDelta({ tool_calls: [{ index: 0, function: { arguments: 'ty": 1}' } }] }),
      chatDelta({ content: "other" }, null, 1),
      chatDelta({}, "stop"),
    ],
  },
  { url: CHAT!, body: { messages: [{ role: "system", content: "a" }, { role: "system", content: "b" }] } },
  { url: CHAT!, body: { messages: [PICTURE, { role: "assistant", content: "Yes" }, QUESTION, { role: "assistant", content: "{" }] } },
  { url: CHAT!, body: { messages: [{ role: "user", content: "\u0000 \ud800 x" }, { role: "user", content: "y".repeat(60_000) }] } },
  { url: CHAT!, body: { messages: [{ role: "assistant", content: "", tool_calls: [{ ...TOOL, function: { name: "f", arguments: "z".repeat(20_000) } }] }] } },
  { url: CHAT!, body: { messages: "none" } },
  {
    url: RESPONSES!,
    body: { input: QUESTION.content, instructions: "Be kind" },
    answer: {
      model: "m",
      output: [
        { type: "reasoning", id: "rs", summary: [] },
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "Sun" }, { type: "output_text", text: "ny" }] },
        { type: "web_search_call", id: "ws", action: { query: "x" } },
      ],
    },
    events: [
      { type: "response.created", response: { model: "m", output: [] } },
      { type: "response.output_item.added", output_index: 0, item: { type: "message", role: "assistant", content: [] } },
      { type: "response.output_text.delta", output_index: 0, delta: "Sun" },
      { type: "response.output_item.added", output_index: 1, item: { type: "function_call", call_id: "c", name: "f", arguments: "" } },
      { type: "response.function_call_arguments.delta", output_index: 1, delta: "{}" },
    ],
  },
  {
    url: RESPONSES!,
    body: {
      input: [
        { role: "developer", content: "Be kind" },
        { type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }, { type: "input_image", image_url: "x" }] },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "Sunny" },
        { type: "shell_call_output", call_id: "s", output: [{ stdout: "out", stderr: "err" }] },
        { type: "computer_call_output", call_id: "p", output: { type: "computer_screenshot", image_url: "x" } },
        { type: "custom_tool_call", call_id: "u", name: "run", input: "ls" },
      ],
    },
    events: [
      { type: "response.failed", response: { model: "m", output: [{ type: "message", role: "assistant", content: "Part" }] } },
    ],
  },
  { url: RESPONSES!, body: { input: [{ type: "function_call_output", call_id: "c", output: "x" }], previous_response_id: "r", instructions: null } },
  { url: RESPONSES!, body: { input: 7 } },
  {
    url: MESSAGES!,
    body: {
      system: "Be kind",
      messages: [
        QUESTION,
        { role: "assistant", content: [{ type: "thinking", thinking: "Hm" }, { type: "text", text: "Let me" }, USE, { type: "text", text: "see." }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "Sunny" }, { type: "image", source: {} }] }, { type: "text", text: "And now?" }] },
        { role: "assistant", content: [{ ...USE, id: "toolu_2" }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_2", content: "Rain" }] },
      ],
    },
    answer: { role: "assistant", model: "m", content: [{ type: "text", text: "Sunny" }, { ...USE, type: "server_tool_use" }] },
    events: [
      { type: "message_start", message: { model: "m" } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Sun" } },
      { type: "content_block_start", index: 1, content_block: { ...USE, input: {} } },
      { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '{"city": "Lis' } },
    ],
  },
  { url: MESSAGES!, body: { system: [{ type: "text", text: "x", cache_control: {} }], messages: [{ role: "user", content: "" }] }, events: [{ type: "message_stop" }] },
  { url: "/embeddings", body: { messages: [] } },
  { url: "/v1/messages/count_tokens", body: { messages: [] } },
];

test("every call is read, placed and stored as by the Python client", async () => {
  const plain = JSON.parse(JSON.stringify(CALLS.map(readHere))) as unknown;
  expect(plain).toEqual(await readByPython(CALLS));
});

function readHere({ url, body, answer, events }: ModelCall): unknown {
  const wire = wireOf(url, body);
  if (!wire) return { wire: null };
  const turns = wire.turns(body);
  const answered = answer ? wire.answer(answer) : [];
  const streamed = events ? wire.streamed(events) : [];
  const at = new Date("2026-01-02T03:04:05Z");
  const messages = [...turns, ...answered, ...streamed].map((turn) => messageOf(turn, at, "alice") ?? null);
  const placed = wire.placed(body, prefaced("Blocks"), prefaced("Memories", true));
  return { wire: true, turns, placed, answer: answered, streamed, messages };
}

function readByPython(calls: ModelCall[]): Promise<unknown> {
  const script = new URL("support/python_wires.py", import.meta.url).pathname;
  const env = { ...process.env, PYTHONPATH: `${ROOT}/client`, PYTHONDONTWRITEBYTECODE: "1" };
  const python = spawn(PYTHON, [script], { env, stdio: ["pipe", "pipe", "inherit"] });
  python.stdin.end(JSON.stringify(calls));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    python.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    python.once("close", (code) => {
      if (code === 0) resolve(JSON.parse(Buffer.concat(chunks).toString()));
      else reject(new Error(`Python ended with ${code}`));
    });
  });
}
