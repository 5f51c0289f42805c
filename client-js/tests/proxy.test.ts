/** The real packages openai and @anthropic-ai/sdk, as they are, through the proxy of the service. */

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { Souvenir } from "../src/index.js";
import { storedIn, teach } from "./support/stored.js";
import { startVendor, type Vendor } from "./support/vendor.js";

const serverUrl = inject("serviceUrl");
const souvenir = new Souvenir({ serverUrl });
const QUESTION = { role: "user" as const, content: "When is the launch?" };
const LAUNCH = "The launch is on 12 March.";
const WEATHER = { id: "call_1", name: "get_weather", arguments: { city: "Lisbon" } };

let vendor: Vendor;

beforeAll(async () => {
  vendor = await startVendor(inject("proxiedPort"));
});

afterAll(() => vendor.server.stop());

function access(agent: string) {
  const named = { "X-Souvenir-Agent": agent, "X-Souvenir-Session": agent };
  const headers = { ...named, "X-Souvenir-Key": process.env["SOUVENIR_API_KEY"]! };
  return { apiKey: "sk-of-the-vendor", maxRetries: 0, defaultHeaders: headers };
}

const openai = (agent: string) => new OpenAI({ baseURL: `${serverUrl}/v1`, ...access(agent) });
const anthropic = (agent: string) => new Anthropic({ baseURL: serverUrl, ...access(agent) });
const contents = async (agent: string) => (await storedIn(souvenir, agent, agent)).map(({ content }) => content);
const shown = () => JSON.stringify(vendor.requests.at(-1)!.body);

test.each(["plain", "streamed"])("a chat completion gets context and is stored: %s", async (form) => {
  const agent = `proxied-chat-${form}`;
  await teach(souvenir, agent);
  vendor.says.push({ text: LAUNCH });
  const request = { model: "gpt-scripted", messages: [QUESTION] };
  const { completions } = openai(agent).chat;
  let text = "";
  if (form === "plain") {
    text = (await completions.create(request)).choices[0]!.message.content!;
  } else {
    for await (const chunk of await completions.create({ ...request, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? "";
    }
  }
  expect(text).toBe(LAUNCH);
  expect(shown()).toContain(LAUNCH);
  expect(vendor.requests.at(-1)!.headers["authorization"]).toBe("Bearer sk-of-the-vendor");
  expect(shown()).not.toContain(process.env["SOUVENIR_API_KEY"]);
  await expect.poll(() => contents(agent)).toEqual([QUESTION.content, LAUNCH]);
});

test.each(["plain", "streamed"])("a message gets context and is stored: %s", async (form) => {
  const agent = `proxied-message-${form}`;
  await teach(souvenir, agent);
  vendor.says.push({ text: LAUNCH });
  const request = { model: "claude-scripted", max_tokens: 64, messages: [QUESTION] };
  const { messages } = anthropic(agent);
  const answer = form === "plain" ? await messages.create(request) : await messages.stream(request).finalMessage();
  expect(answer.content).toMatchObject([{ type: "text", text: LAUNCH }]);
  expect(shown()).toContain(LAUNCH);
  await expect.poll(() => contents(agent)).toEqual([QUESTION.content, LAUNCH]);
});

test("calls of tools pass through, and are stored with their results", async () => {
  const agent = "proxied-tools";
  vendor.says.push({ calls: [WEATHER] }, { text: "Sunny." });
  const tools: OpenAI.ChatCompletionTool[] = [
    { type: "function", function: { name: "get_weather", parameters: { type: "object" } } },
  ];
  const asked: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "How is the weather in Lisbon?" }];
  const { completions } = openai(agent).chat;
  const first = (await completions.create({ model: "gpt-scripted", messages: asked, tools })).choices[0]!.message;
  expect(first.tool_calls).toMatchObject([{ function: { name: "get_weather" } }]);
  const result = { role: "tool" as const, tool_call_id: first.tool_calls![0]!.id, content: "31 degrees" };
  const turns = [...asked, first, result];
  const second = await completions.create({ model: "gpt-scripted", messages: turns, tools });
  expect(second.choices[0]!.message.content).toBe("Sunny.");
  expect(await contents(agent)).toEqual([
    "How is the weather in Lisbon?",
    'Calls get_weather({"city":"Lisbon"})',
    "get_weather returned: 31 degrees",
    "Sunny.",
  ]);
});

test("Responses and embeddings are answered, and an error of the vendor arrives as it is", async () => {
  const agent = "proxied-others";
  await teach(souvenir, agent);
  vendor.says.push({ text: LAUNCH }, { status: 429 });
  const client = openai(agent);
  const answer = await client.responses.create({ model: "gpt-scripted", input: QUESTION.content });
  expect(answer.output_text).toBe(LAUNCH);
  expect(await contents(agent)).toEqual([QUESTION.content, LAUNCH]);
  const { data } = await client.embeddings.create({ model: "any", input: ["a text", "another"] });
  expect(data.map(({ embedding }) => embedding.length)).toEqual([384, 384]);
  const refused = client.chat.completions.create({ model: "gpt-scripted", messages: [QUESTION] });
  await expect(refused).rejects.toThrow("429 It does not work");
});
