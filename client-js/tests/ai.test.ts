/** The middleware and the tools for the real package ai, against a scripted vendor and the real service. */

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool, jsonSchema, wrapLanguageModel, type LanguageModelMiddleware } from "ai";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { flush, souvenirMiddleware, souvenirTools } from "../src/ai.js";
import { Souvenir } from "../src/index.js";
import { freePort } from "./support/start-service.js";
import { storedIn, teach } from "./support/stored.js";
import { startVendor, type Vendor } from "./support/vendor.js";

const serverUrl = inject("serviceUrl");
const souvenir = new Souvenir({ serverUrl });
const PROMPT = "When is the launch?";

let vendor: Vendor;

beforeAll(async () => {
  vendor = await startVendor();
});

afterAll(() => vendor.server.stop());

const memoryOf = (agent: string, url = serverUrl) =>
  souvenirMiddleware({ agent, serverUrl: url, sessionId: agent, timeoutMs: 15_000 });

function modelWith(middleware: LanguageModelMiddleware) {
  const provider = createOpenAICompatible({ name: "scripted", baseURL: `${vendor.url}/v1` });
  return wrapLanguageModel({ model: provider("gpt-scripted"), middleware });
}

const lastBody = () => vendor.requests.at(-1)!.body;
const stored = (agent: string) => storedIn(souvenir, agent, agent);
const contents = async (agent: string) => (await stored(agent)).map((message) => message.content);

describe("souvenirMiddleware", () => {
  test("the context goes into the prompt, and both sides are stored", async () => {
    await teach(souvenir, "ai");
    const middleware = memoryOf("ai");
    vendor.says.push({ text: "On 12 March." });
    const { text } = await generateText({ model: modelWith(middleware), system: "Be brief", prompt: PROMPT });
    expect(text).toBe("On 12 March.");
    const [system, stable, question, ...rest] = lastBody().messages;
    expect([system, rest]).toEqual([{ role: "system", content: "Be brief" }, []]);
    expect(stable).toMatchObject({ role: "system", content: expect.stringContaining("Name: Alice") });
    expect(question.content[0]).toEqual({ type: "text", text: PROMPT });
    expect(question.content[1].text).toMatch(/^The following is (context )?from your memory.*The launch is on 12 March/s);
    expect(await flush(middleware)).toEqual({ waiting: 0, dropped: 0 });
    expect(await stored("ai")).toEqual([
      { role: "user", content: PROMPT, metadata: null },
      { role: "assistant", content: "On 12 March.", metadata: { model: "gpt-scripted" } },
    ]);
  });

  test("a stream is stored when it was read to its end", async () => {
    const middleware = memoryOf("ai-streamed");
    vendor.says.push({ text: "One two three" });
    const { textStream } = streamText({ model: modelWith(middleware), prompt: PROMPT });
    let text = "";
    for await (const piece of textStream) text += piece;
    expect(text).toBe("One two three");
    await flush(middleware);
    expect(await stored("ai-streamed")).toEqual([
      { role: "user", content: PROMPT, metadata: null },
      { role: "assistant", content: text, metadata: { model: "gpt-scripted" } },
    ]);
  });

  test("of a stream that is aborted, the received part is stored as incomplete", async () => {
    const middleware = memoryOf("ai-aborted");
    const controller = new AbortController();
    vendor.says.push({ text: "One two three four", pause: { after: 3, until: vendor.server.left } });
    const { textStream } = streamText({ model: modelWith(middleware), prompt: PROMPT, abortSignal: controller.signal });
    let text = "";
    for await (const piece of textStream) if ((text += piece) === "One two th") controller.abort();
    await vendor.server.left;
    await flush(middleware);
    expect((await stored("ai-aborted"))[1]).toEqual({
      role: "assistant",
      content: "One two th",
      metadata: { model: "gpt-scripted", incomplete: true },
    });
  });

  test.each([false, true])("tool calls keep their context in the loop, and are stored; streamed: %s", async (isStreamed) => {
    const agent = `ai-tools-${isStreamed}`;
    await teach(souvenir, agent);
    const middleware = memoryOf(agent);
    vendor.says.push({ calls: [{ id: "call_1", name: "get_weather", arguments: { city: "Lisbon" } }] }, { text: "Rain." });
    const get_weather = tool({
      inputSchema: jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } }),
      execute: async ({ city }) => ({ weather: `rain in ${city}` }),
    });
    const request = { model: modelWith(middleware), prompt: PROMPT, tools: { get_weather }, stopWhen: stepCountIs(3) };
    expect(isStreamed ? await streamText(request).text : (await generateText(request)).text).toBe("Rain.");
    const [first, second] = vendor.requests.slice(-2).map((one) => one.body.messages);
    expect(second.slice(0, first.length)).toEqual(first);
    await flush(middleware);
    expect(await contents(agent)).toEqual([
      PROMPT,
      'Calls get_weather({"city":"Lisbon"})',
      'get_weather returned: {"weather": "rain in Lisbon"}',
      "Rain.",
    ]);
  });

  test("the model is called when no service answers", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const middleware = memoryOf("ai-lost", `http://127.0.0.1:${await freePort()}`);
    expect((await generateText({ model: modelWith(middleware), prompt: PROMPT })).text).toBe("Noted.");
    expect(await flush(middleware, 100)).toEqual({ waiting: 2, dropped: 0 });
    expect(warn).toHaveBeenCalledTimes(1);
    warn.mockRestore();
  });
});

describe("souvenirTools", () => {
  const asked = (name: string, given: object) => ({ calls: [{ id: "call_1", name, arguments: given }] });

  /** What the tool answers, as the model gets it. */
  async function run(agent: string, name: string, given: object): Promise<any> {
    vendor.says.push(asked(name, given), { text: "Done." });
    const model = createOpenAICompatible({ name: "scripted", baseURL: `${vendor.url}/v1` })("gpt-scripted");
    await generateText({ model, prompt: "Go", tools: souvenirTools(souvenir, { agent }), stopWhen: stepCountIs(2) });
    const { content } = lastBody().messages.at(-1);
    return content.startsWith("{") ? JSON.parse(content) : content;
  }

  test("a model adds, finds, changes and deletes memories of the agent", async () => {
    const { memory_id } = await run("tooled", "add_memory", { text: "The launch is on 12 March." });
    expect(lastBody().tools.map((one: any) => one.function.name)).toEqual([
      "search_memory",
      "add_memory",
      "update_memory",
      "delete_memory",
    ]);
    const found = await run("tooled", "search_memory", { query: "When is the launch?", limit: 3 });
    expect(found.results).toMatchObject([{ memory_id, text: "The launch is on 12 March.", source: "ai-sdk" }]);
    await run("tooled", "update_memory", { memory_id, text: "The launch is on 13 March." });
    const store = souvenir.inNamespace("tooled");
    expect((await store.memories.get(memory_id)).text).toBe("The launch is on 13 March.");
    await run("tooled", "delete_memory", { memory_id });
    expect((await store.memories.count()).count).toBe(0);
  });

  test("a refusal is shown to the model", async () => {
    await souvenir.agents.create({ name: "refused" });
    expect(await run("refused", "delete_memory", { memory_id: 999 })).toMatch(/999.*memory_not_found/);
  });
});
