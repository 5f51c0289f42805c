/** `withMemory` around the real package @anthropic-ai/sdk, against a scripted vendor and the real service. */

import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { flush, Souvenir, withMemory } from "../src/index.js";
import { freePort } from "./support/start-service.js";
import { storedIn, teach } from "./support/stored.js";
import { startVendor, type Vendor } from "./support/vendor.js";

const serverUrl = inject("serviceUrl");
const souvenir = new Souvenir({ serverUrl });
const REQUEST = {
  model: "claude-scripted",
  max_tokens: 200,
  messages: [{ role: "user" as const, content: "When is the launch?" }],
};
const WEATHER = { id: "toolu_1", name: "get_weather", arguments: { city: "Lisbon" } };

let vendor: Vendor;
let plain: Anthropic;

beforeAll(async () => {
  vendor = await startVendor();
  plain = new Anthropic({ apiKey: "sk-scripted", baseURL: vendor.url, maxRetries: 0 });
});

afterAll(() => vendor.server.stop());

function remembering(agent: string, url = serverUrl): Anthropic {
  return withMemory(plain, { agent, serverUrl: url, sessionId: agent, timeoutMs: 15_000 });
}

const lastBody = () => vendor.requests.at(-1)!.body;
const stored = (agent: string) => storedIn(souvenir, agent, agent);
const contents = async (agent: string) => (await stored(agent)).map((message) => message.content);

test("the context goes behind the caller's cache markers, both sides are stored, and nothing of the caller changes", async () => {
  await teach(souvenir, "claude");
  const anthropic = remembering("claude");
  const marked = { type: "text" as const, text: "Be brief", cache_control: { type: "ephemeral" as const } };
  const request = { ...REQUEST, system: [marked] };
  const before = structuredClone(request);
  vendor.says.push({ text: "On 12 March." });
  const answer = await anthropic.messages.create(request);

  expect(answer.content).toMatchObject([{ type: "text", text: "On 12 March." }]);
  expect(request).toEqual(before);
  expect(lastBody().system).toEqual([
    marked,
    { type: "text", text: expect.stringMatching(/^The following is context from your memory.*Name: Alice/s) },
  ]);
  expect(lastBody().messages).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "When is the launch?" },
        { type: "text", text: expect.stringContaining("The launch is on 12 March.") },
      ],
    },
  ]);
  await flush(anthropic);
  expect(await stored("claude")).toEqual([
    { role: "user", content: "When is the launch?", metadata: null },
    { role: "assistant", content: "On 12 March.", metadata: { model: "claude-scripted" } },
  ]);
});

test.each(["stream: true", "stream()", "beta"])("an answer is stored when it was read to its end: %s", async (form) => {
  const agent = `claude-${form.length}`;
  const anthropic = remembering(agent);
  vendor.says.push({ text: "One two three" });
  let text = "";
  const events =
    form === "stream: true"
      ? await anthropic.messages.create({ ...REQUEST, stream: true })
      : form === "beta"
        ? await anthropic.beta.messages.create({ ...REQUEST, stream: true })
        : anthropic.messages.stream(REQUEST);
  for await (const event of events) {
    if (event.type === "content_block_delta" && event.delta.type === "text_delta") text += event.delta.text;
  }
  expect(text).toBe("One two three");
  await flush(anthropic);
  expect(await stored(agent)).toEqual([
    { role: "user", content: "When is the launch?", metadata: null },
    { role: "assistant", content: "One two three", metadata: { model: "claude-scripted" } },
  ]);
});

test("of a stream that is left early, the received part is stored as incomplete", async () => {
  const anthropic = remembering("claude-left");
  vendor.says.push({ text: "One two three four", pause: { after: 5, until: vendor.server.left } });
  for await (const event of await anthropic.messages.create({ ...REQUEST, stream: true })) {
    if (event.type === "content_block_delta" && event.delta.type === "text_delta" && event.delta.text.startsWith("wo")) break;
    if (event.type === "content_block_delta" && event.index === 0 && JSON.stringify(event).includes("o th")) break;
  }
  await vendor.server.left;
  await flush(anthropic);
  expect((await stored("claude-left"))[1]).toEqual({
    role: "assistant",
    content: "One two th",
    metadata: { model: "claude-scripted", incomplete: true },
  });
});

test.each([false, true])("tool calls and their results pass unchanged, and are stored; streamed: %s", async (stream) => {
  const agent = `claude-tools-${stream}`;
  await teach(souvenir, agent);
  const anthropic = remembering(agent);
  vendor.says.push({ text: "Let me see.", calls: [WEATHER] }, { text: "Rain." });
  const first = stream ? await anthropic.messages.stream(REQUEST).finalMessage() : await anthropic.messages.create(REQUEST);
  expect(first.content[1]).toMatchObject({ type: "tool_use", id: "toolu_1", input: { city: "Lisbon" } });
  const sent = lastBody();
  const result = { type: "tool_result" as const, tool_use_id: "toolu_1", content: "It rains" };
  const messages = [
    ...REQUEST.messages,
    { role: "assistant" as const, content: first.content },
    { role: "user" as const, content: [result] },
  ];
  await anthropic.messages.create({ ...REQUEST, messages });
  // During a tool loop the context stays the same, so that the vendor can cache the prompt.
  expect(lastBody().system).toEqual(sent.system);
  expect(lastBody().messages[0]).toEqual(sent.messages[0]);
  expect(lastBody().messages[2]).toEqual({ role: "user", content: [result] });
  await flush(anthropic);
  expect(await contents(agent)).toEqual([
    "When is the launch?",
    'Let me see.\n\nCalls get_weather({"city": "Lisbon"})',
    "get_weather returned: It rains",
    "Rain.",
  ]);
});

test("calls for no conversation are not touched", async () => {
  const { messages, model } = REQUEST;
  await expect(remembering("claude-other").messages.countTokens({ messages, model })).rejects.toThrow("404");
  expect(lastBody().messages).toEqual(messages);
});

test("the model is called when no service answers", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const anthropic = remembering("claude-lost", `http://127.0.0.1:${await freePort()}`);
  expect((await anthropic.messages.create(REQUEST)).content).toMatchObject([{ text: "Noted." }]);
  expect(lastBody().messages).toEqual(REQUEST.messages);
  expect(await flush(anthropic, 100)).toEqual({ waiting: 2, dropped: 0 });
  expect(warn).toHaveBeenCalledTimes(1);
  warn.mockRestore();
});
