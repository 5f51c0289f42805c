/** `withMemory` around the real package openai, against a scripted vendor and the real service. */

import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { flush, Souvenir, withMemory, type MemoryOptions } from "../src/index.js";
import { freePort } from "./support/start-service.js";
import { storedIn, teach } from "./support/stored.js";
import { ScriptedServer } from "./support/scripted-server.js";
import { startVendor, type Vendor } from "./support/vendor.js";

const serverUrl = inject("serviceUrl");
const souvenir = new Souvenir({ serverUrl });
const QUESTION = { role: "user" as const, content: "When is the launch?" };
const MODEL = "gpt-scripted";
const MARCH = { text: "On 12 March." };

let vendor: Vendor;
let plain: OpenAI;

beforeAll(async () => {
  vendor = await startVendor();
  plain = new OpenAI({ apiKey: "sk-scripted", baseURL: `${vendor.url}/v1`, maxRetries: 1 });
});

afterAll(() => vendor.server.stop());

/** A client of an agent in a session of its own, with a patience for a busy machine. */
function remembering(agent: string, more: Partial<MemoryOptions> = {}): OpenAI {
  return withMemory(plain, { agent, serverUrl, sessionId: agent, timeoutMs: 15_000, ...more });
}

const lastBody = () => vendor.requests.at(-1)!.body;
const stored = (agent: string) => storedIn(souvenir, agent, agent);
const contents = async (agent: string) => (await stored(agent)).map((message) => message.content);

describe("chat completions", () => {
  test("the context goes into the request, both sides are stored, and nothing of the caller changes", async () => {
    await teach(souvenir, "chat");
    const openai = remembering("chat");
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "system", content: "Be brief" }, QUESTION];
    const before = structuredClone(messages);
    vendor.says.push(MARCH);
    const answer = await openai.chat.completions.create({ model: MODEL, messages });

    expect(answer.choices[0]!.message.content).toBe("On 12 March.");
    expect(messages).toEqual(before);
    const [system, stable, tail, question, ...rest] = lastBody().messages;
    expect([system, question, rest]).toEqual([messages[0], QUESTION, []]);
    expect(stable).toMatchObject({ role: "system", content: expect.stringMatching(/^The following is context from your memory.*Name: Alice/s) });
    expect(tail).toMatchObject({ role: "system", content: expect.stringContaining("The launch is on 12 March.") });

    expect(await flush(openai)).toEqual({ waiting: 0, dropped: 0 });
    expect(await stored("chat")).toEqual([
      { role: "user", content: "When is the launch?", metadata: null },
      { role: "assistant", content: "On 12 March.", metadata: { model: MODEL } },
    ]);
  });

  test("a stream arrives unchanged while it is sent, and is stored when it was read to its end", async () => {
    const openai = remembering("streamed");
    let goOn = () => {};
    const until = new Promise<void>((resolve) => (goOn = resolve));
    vendor.says.push({ text: "The launch is on 12 March.", pause: { after: 3, until } });
    const stream = await openai.chat.completions.create({ model: MODEL, messages: [QUESTION], stream: true });
    let text = "";
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      if (text.length >= 10) goOn();
    }
    expect(text).toBe("The launch is on 12 March.");
    await flush(openai);
    expect(await stored("streamed")).toEqual([
      { role: "user", content: QUESTION.content, metadata: null },
      { role: "assistant", content: text, metadata: { model: MODEL } },
    ]);
  });

  test("of a stream that is left early, the received part is stored as incomplete, and the vendor is disconnected", async () => {
    const openai = remembering("abandoned");
    vendor.says.push({ text: "One two three four", pause: { after: 3, until: vendor.server.left } });
    const stream = await openai.chat.completions.create({ model: MODEL, messages: [QUESTION], stream: true });
    let text = "";
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      if (text === "One two th") break;
    }
    await vendor.server.left;
    await flush(openai);
    expect((await stored("abandoned"))[1]).toEqual({
      role: "assistant",
      content: "One two th",
      metadata: { model: MODEL, incomplete: true },
    });
  });

  test("of a stream that breaks, the received part is stored as incomplete, and the error reaches the caller", async () => {
    const openai = remembering("broken");
    vendor.says.push({ text: "One two three four", stopsAfter: 3 });
    const stream = await openai.chat.completions.create({ model: MODEL, messages: [QUESTION], stream: true });
    const read = async () => {
      for await (const _ of stream) continue;
    };
    await expect(read()).rejects.toThrow();
    await flush(openai);
    expect((await stored("broken"))[1]).toMatchObject({ metadata: { incomplete: true } });
  });

  test("tool calls pass unchanged, keep their context in the loop, and are stored with their results", async () => {
    await teach(souvenir, "tools");
    const openai = remembering("tools");
    vendor.says.push({ calls: [{ id: "call_1", name: "get_weather", arguments: { city: "Lisbon" } }] }, { text: "Rain." });
    const seen: unknown[] = [];
    const runner = openai.chat.completions.runTools({
      model: MODEL,
      messages: [QUESTION],
      tools: [
        {
          type: "function",
          function: {
            name: "get_weather",
            description: "The weather",
            parameters: { type: "object", properties: { city: { type: "string" } } },
            parse: JSON.parse,
            function: (given: unknown) => (seen.push(given), "It rains"),
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe("Rain.");
    expect(seen).toEqual([{ city: "Lisbon" }]);
    const [first, second] = vendor.requests.slice(-2).map((request) => request.body.messages);
    expect(second.slice(0, first.length)).toEqual(first);
    expect(second.at(-1)).toMatchObject({ role: "tool", tool_call_id: "call_1", content: "It rains" });

    await flush(openai);
    expect(await contents("tools")).toEqual([
      QUESTION.content,
      'Calls get_weather({"city":"Lisbon"})',
      "get_weather returned: It rains",
      "Rain.",
    ]);
    const call = { id: "call_1", name: "get_weather", arguments: '{"city":"Lisbon"}' };
    expect((await stored("tools"))[1]!.metadata).toEqual({ tool_calls: [call], model: MODEL });
  });

  test("a streamed tool call is put together", async () => {
    const openai = remembering("streamed-tools");
    vendor.says.push({ calls: [{ id: "call_1", name: "get_weather", arguments: { city: "Lisbon" } }] });
    const stream = openai.chat.completions.stream({ model: MODEL, messages: [QUESTION] });
    expect((await stream.finalMessage()).tool_calls).toHaveLength(1);
    await flush(openai);
    expect(await contents("streamed-tools")).toEqual([QUESTION.content, 'Calls get_weather({"city":"Lisbon"})']);
  });

  test("only what is new of a conversation is stored, and a repeated request stores nothing twice", async () => {
    const openai = remembering("growing");
    vendor.says.push({ text: "One." }, { status: 500 }, { text: "Two." });
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "First" }];
    const one = await openai.chat.completions.create({ model: MODEL, messages });
    messages.push(one.choices[0]!.message, { role: "user", content: "Second" });
    await openai.chat.completions.create({ model: MODEL, messages });
    await flush(openai);
    expect(await contents("growing")).toEqual(["First", "One.", "Second", "Two."]);
  });

  test("the question is stored even if the call fails, and its error is the SDK's own", async () => {
    const openai = remembering("failing");
    vendor.says.push({ status: 400 });
    const call = openai.chat.completions.create({ model: MODEL, messages: [QUESTION] });
    await expect(call).rejects.toThrow(OpenAI.BadRequestError);
    await flush(openai);
    expect(await contents("failing")).toEqual([QUESTION.content]);
  });

  test("the raw response and the request id are there", async () => {
    const openai = remembering("raw");
    const { data, response } = await openai.chat.completions.create({ model: MODEL, messages: [QUESTION] }).withResponse();
    expect(data.choices[0]!.message.content).toBe("Noted.");
    expect(response.url).toBe(`${vendor.url}/v1/chat/completions`);
    await flush(openai);
    expect(await contents("raw")).toHaveLength(2);
  });

  test("a picture is an attachment", async () => {
    const openai = remembering("picture");
    const picture = { type: "image_url" as const, image_url: { url: "data:image/png;base64,AAAA" } };
    const content = [{ type: "text" as const, text: "What is this?" }, picture];
    await openai.chat.completions.create({ model: MODEL, messages: [{ role: "user", content }] });
    await flush(openai);
    expect((await stored("picture"))[0]).toMatchObject({ content: "What is this?", metadata: { attachments: ["image"] } });
  });
});

describe("Responses", () => {
  test.each([false, true])("context, question and answer; streamed: %s", async (stream) => {
    const agent = `responses-${stream}`;
    await teach(souvenir, agent);
    const openai = remembering(agent);
    vendor.says.push(MARCH);
    const request = { model: MODEL, input: QUESTION.content, instructions: "Be brief" };
    if (stream) for await (const _ of await openai.responses.create({ ...request, stream })) continue;
    else expect((await openai.responses.create(request)).output_text).toBe("On 12 March.");
    expect(lastBody().instructions).toMatch(/^Be brief\n\nThe following is context from your memory.*Name: Alice/s);
    const [tail, question] = lastBody().input;
    expect(tail).toMatchObject({ type: "message", role: "system", content: expect.stringContaining("12 March") });
    expect(question).toEqual(QUESTION);
    await flush(openai);
    expect(await contents(agent)).toEqual([QUESTION.content, "On 12 March."]);
  });

  test("function calls and their outputs are stored, and passed unchanged", async () => {
    const openai = remembering("functions");
    vendor.says.push({ calls: [{ id: "call_1", name: "get_weather", arguments: { city: "Lisbon" } }] }, { text: "Rain." });
    const first = await openai.responses.create({ model: MODEL, input: "Weather?" });
    const call = first.output.find((item) => item.type === "function_call")!;
    const result = { type: "function_call_output" as const, call_id: call.call_id, output: "It rains" };
    await openai.responses.create({ model: MODEL, input: [result], previous_response_id: first.id });
    expect(lastBody().input).toEqual([result]);
    await flush(openai);
    expect(await contents("functions")).toEqual([
      "Weather?",
      'Calls get_weather({"city":"Lisbon"})',
      "A tool returned: It rains",
      "Rain.",
    ]);
  });
});

describe("agents", () => {
  test("wrapping again replaces the memory, and the given client has none", async () => {
    const first = remembering("first-agent");
    const second = withMemory(first, { agent: "second-agent", serverUrl, sessionId: "second-agent" });
    await second.chat.completions.create({ model: MODEL, messages: [QUESTION] });
    await plain.chat.completions.create({ model: MODEL, messages: [QUESTION] });
    expect(lastBody().messages).toEqual([QUESTION]);
    await flush(second);
    await flush(first);
    expect(await contents("second-agent")).toHaveLength(2);
    expect((await souvenir.agents.list({ name_prefix: "first-agent" })).total).toBe(0);
    await expect(flush(plain)).rejects.toThrow(TypeError);
  });

  test("another session recalls what was said; a client without context stores only", async () => {
    const first = remembering("recalling", { user: "alice" });
    await first.chat.completions.create({ model: MODEL, messages: [{ role: "user", content: "My favourite colour is teal." }] });
    await flush(first);
    const ask = { model: MODEL, messages: [{ role: "user" as const, content: "Which colour is my favourite?" }] };
    const later = remembering("recalling", { user: "alice", sessionId: "later" });
    await later.chat.completions.create(ask);
    expect(JSON.stringify(lastBody())).toContain("favourite colour is teal");
    const silent = remembering("recalling", { user: "alice", sessionId: "silent", captureOnly: true });
    await silent.chat.completions.create(ask);
    expect(lastBody()).toEqual(ask);
    await Promise.all([flush(later), flush(silent)]);
    expect(await storedIn(souvenir, "recalling", "silent")).toHaveLength(2);
  });

  test("other calls of the SDK are not touched", async () => {
    await expect(remembering("other").embeddings.create({ model: MODEL, input: "x" })).rejects.toThrow("404");
    expect(lastBody()).toMatchObject({ input: "x" });
  });

  test.each([{ agent: "a/b" }, { agent: "a", user: "" }, { agent: "a", maxTokens: 63 }, { agent: "a", timeoutMs: 0 }])(
    "%o is refused",
    (options) => {
      expect(() => withMemory(plain, options)).toThrow(TypeError);
    },
  );

  test("what is no client is refused", () => {
    expect(() => withMemory({} as never, { agent: "a" })).toThrow(/openai and @anthropic-ai/);
  });
});

describe("without a service", () => {
  test("the model is called, one warning is written, and what waits is counted", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const openai = remembering("lost", { serverUrl: `http://127.0.0.1:${await freePort()}` });
    for (const number of [1, 2, 3]) {
      const messages = [{ role: "user" as const, content: `Question ${number}` }];
      const answer = await openai.chat.completions.create({ model: MODEL, messages });
      expect(answer.choices[0]!.message.content).toBe("Noted.");
      expect(lastBody().messages).toEqual(messages);
    }
    expect(await flush(openai, 200)).toEqual({ waiting: 6, dropped: 0 });
    expect(warn.mock.calls).toEqual([[expect.stringMatching(/continue without the memory of http.*context failed/)]]);
    warn.mockRestore();
  });

  test("the model is called when another program answers at the address", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    for (const body of [{}, null, [], 5, { stable_prefix: "x" }, { stable_prefix: 5, volatile_tail: null }]) {
      const other = await new ScriptedServer(() => ({ body })).start();
      const openai = remembering("other program", { serverUrl: other.url });
      const answer = await openai.chat.completions.create({ model: MODEL, messages: [QUESTION] });
      expect(answer.choices[0]!.message.content).toBe("Noted.");
      expect(lastBody().messages).toEqual([QUESTION]);
      expect(warn.mock.lastCall).toEqual([expect.stringMatching(/context failed.*cannot be read: it is not a context/)]);
      await flush(openai, 1_000);
      await other.stop();
    }
    warn.mockRestore();
  });

  test("a call waits at most timeoutMs for a service that does not answer", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const silent = await startVendor();
    silent.server.replies.push(...Array.from({ length: 9 }, () => ({ isSilent: true })));
    const openai = remembering("waiting", { serverUrl: silent.url, timeoutMs: 100 });
    const begin = performance.now();
    await openai.chat.completions.create({ model: MODEL, messages: [QUESTION] });
    expect(performance.now() - begin).toBeGreaterThan(95);
    expect(lastBody().messages).toEqual([QUESTION]);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("no answer within 100 ms"));
    await silent.server.stop();
    warn.mockRestore();
  });
});
