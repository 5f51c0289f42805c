/** The client against the real service. */

import { describe, expect, expectTypeOf, inject, test } from "vitest";
import { NotFound, Souvenir, type components } from "../src/index.js";

const serverUrl = inject("serviceUrl");
const souvenir = new Souvenir({ serverUrl });

test("a memory is added, found, changed and deleted", async () => {
  const store = souvenir.inNamespace("basics");
  const added = await store.memories.add({ text: "Alice moved the launch to 12 March.", source: "notes/launch" });
  const found = await store.memories.search({ query: "when is the launch?", k: 1 });
  expectTypeOf(found).toEqualTypeOf<components["schemas"]["SearchResponse"]>();
  expect(found.results[0]).toMatchObject({ id: added.id, source: "notes/launch" });

  const { id } = found.results[0]!;
  await store.memories.update(id, { text: "Alice moved the launch to 13 March." });
  expect((await store.memories.get(id)).text).toBe("Alice moved the launch to 13 March.");
  expect((await store.memories.history(id)).changes).toHaveLength(2);
  await store.memories.delete(id);
  await expect(store.memories.get(id)).rejects.toThrow(NotFound);
});

test("an error has the class, status, code, message and request id of the refusal", async () => {
  const error = await souvenir.memories.get(987654).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(NotFound);
  expect(error).toMatchObject({ name: "NotFound", status: 404, code: "memory_not_found" });
  expect((error as NotFound).message).toMatch(/987654.*\(404, memory_not_found\)/);
  expect((error as NotFound).requestId).toBeTruthy();
});

test("invalid fields are one sentence", async () => {
  await expect(souvenir.memories.search({ query: "" })).rejects.toThrow(/body\.query: .*\(422/);
});

test("query parameters, lists in the query and names with other scripts arrive", async () => {
  const store = souvenir.inNamespace("équipe 日本");
  await store.memories.add({ text: "Green tea in the morning", source: "a/b", tags: ["tea & co", "green"] });
  await store.memories.add({ text: "Black tea in the evening", source: "a/c", tags: ["green"] });
  expect((await store.memories.list({ tag: ["tea & co", "other"] })).total).toBe(1);
  expect((await store.memories.list({ tag: ["tea & co", "green"], limit: 1 })).total).toBe(2);
  expect((await store.memories.count({ source: "a/c" })).count).toBe(1);
  expect((await souvenir.memories.count({ source: "a/c" })).count).toBe(0);
});

test("the last name of a path may contain slashes where the API has it so, and no other", async () => {
  const store = souvenir.inNamespace("paths");
  await store.memories.add({ text: "Tagged", source: "a", tags: ["area/one two"] });
  expect((await store.tags.delete("area/one two")).changed).toBe(1);
  await expect(souvenir.agents.get("a/b")).rejects.toThrow(TypeError);
  await expect(souvenir.agents.get("..")).rejects.toThrow(TypeError);
});

test("an array has the total of all pages", async () => {
  await souvenir.agents.create({ name: "lister" });
  for (const label of ["one", "two", "three"]) {
    await souvenir.blocks.create({ agent_name: "lister", label, value: label });
  }
  const blocks = await souvenir.blocks.list("lister", { limit: 2 });
  expect(blocks.map((block) => block.label)).toEqual(["one", "two"]);
  expect(blocks.total).toBe(3);
});

test("the context of an agent is built", async () => {
  await souvenir.agents.create({ name: "helper" });
  await souvenir.blocks.create({ agent_name: "helper", label: "human", value: "Name: Alice" });
  expect((await souvenir.context.build("helper", { query: "Who am I?" })).text).toContain("Name: Alice");
});

test("If-Match prevents a lost update", async () => {
  await souvenir.blocks.create({ agent_name: "matcher", label: "human", value: "one" });
  const block = await souvenir.blocks.update("matcher", "human", { value: "two", if_match: '"1"' });
  expect(block.version).toBe(2);
  await expect(souvenir.blocks.update("matcher", "human", { value: "3", if_match: '"1"' })).rejects.toMatchObject({ status: 412 });
});

test("the same Idempotency-Key creates one memory", async () => {
  const store = souvenir.inNamespace("keyed");
  const draft = { text: "Only once", source: "a", idempotency_key: "one-and-only" };
  expect((await store.memories.add(draft)).id).toBe((await store.memories.add(draft)).id);
  expect((await store.memories.count()).count).toBe(1);
});

describe("streams", () => {
  test("an export is read object by object, and imported again", async () => {
    const store = souvenir.inNamespace("exported");
    await store.memories.add({ text: "To be exported: Zürich", source: "a" });
    const lines = [];
    for await (const line of store.transfer.exportMemories()) lines.push(line);
    expect(JSON.stringify(lines)).toContain("Zürich");
    const other = souvenir.inNamespace("imported");
    await other.transfer.importMemories(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    expect((await other.memories.count()).count).toBe(1);
  });

  test("a graph is passed on as bytes", async () => {
    await souvenir.agents.create({ name: "grapher" });
    let text = "";
    for await (const piece of souvenir.agents.graph("grapher", { format: "graphml" })) text += new TextDecoder().decode(piece);
    expect(text).toContain("<graphml");
  });

  test("events arrive as they happen, and continue after the last one", async () => {
    const store = souvenir.inNamespace("watched");
    await store.memories.add({ text: "First", source: "a" });
    const [first] = await take(store.events.stream({ last_event_id: 0 }), 1);
    expect(first).toMatchObject({ type: "memory.added", data: { action: "add" } });
    const second = take(store.events.stream({ last_event_id: first!.id, event_type: "memory.added" }), 1);
    const { id } = await store.memories.add({ text: "Second", source: "a" });
    expect((await second)[0]!.data["id"]).toBe(id);
  });

  test("a stream ends with the reason of the caller's signal", async () => {
    const controller = new AbortController();
    const waiting = take(souvenir.inNamespace("quiet").events.stream({}, { signal: controller.signal }), 1);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });

  test("a refusal is thrown by the first step", async () => {
    await expect(take(souvenir.agents.export("nobody-of-that-name"), 1)).rejects.toThrow(NotFound);
  });
});

test("waiting for a job that does not exist fails", async () => {
  await expect(souvenir.jobs.wait("no-such-job")).rejects.toThrow(NotFound);
});

async function take<Item>(items: AsyncIterable<Item>, count: number): Promise<Item[]> {
  const taken: Item[] = [];
  for await (const item of items) if (taken.push(item) >= count) break;
  return taken;
}
