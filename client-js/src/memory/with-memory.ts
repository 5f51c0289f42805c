/** `withMemory`: a client of OpenAI's or Anthropic's SDK whose calls have the memory of an agent. */

import { isRecord } from "../calls.js";
import type { FlushResult } from "./capture.js";
import { Memory, type MemoryOptions, type ModelCall } from "./model-call.js";
import { tapped } from "./tap.js";
import { wireOf } from "./wires/index.js";

type Fetch = typeof globalThis.fetch;

/** What the clients of both SDKs have; its argument is theirs. */
export interface VendorClient {
  withOptions(options: never): unknown;
}

const FLUSH_TIMEOUT_MS = 10_000;

/** The memories of clients, by their fetch, and of middlewares. */
const memories = new WeakMap<object, Memory>();
/** The fetch below ours, so that a client that is wrapped again has one memory. */
const originals = new WeakMap<Fetch, Fetch>();

/**
 * A client like the given one, whose calls get the memory of an agent, and whose messages are stored.
 *
 *     const openai = withMemory(new OpenAI(), { agent: "my_agent" });
 *     await openai.chat.completions.create({ model: "...", messages: [{ role: "user", content: "What's my name?" }] });
 *
 * Captured are chat completions and Responses of `openai`, and messages of `@anthropic-ai/sdk`, in all forms of a call:
 * plain, streamed, `stream()`, `parse()`, tool runners. Other calls are not touched, and the given client is not changed.
 *
 * A model call never fails because of the memory and is not delayed beyond `timeoutMs`: problems are written with
 * `console.warn`, once for each outage. Both sides are stored in the background, an answer when it has been read to its
 * end. The received part of a stream that breaks or is left early is stored with `incomplete`; an answer that is never
 * read is not stored.
 *
 * @throws TypeError If the client is of no supported SDK, or an option is invalid.
 */
export function withMemory<Client extends VendorClient>(client: Client, options: MemoryOptions): Client {
  const found = fetchOf(client);
  if (!found || typeof client.withOptions !== "function") {
    throw new TypeError("withMemory takes a client of the packages openai and @anthropic-ai/sdk");
  }
  const memory = new Memory(options);
  const original = originals.get(found) ?? found;
  const fetch: Fetch = async (input, init) => {
    const call = callOf(memory, input, init);
    if (!call || !init) return original(input, init);
    const body = await call.withContext(isRepeated(init), init.signal);
    const response = await original(input, body ? withBody(init, JSON.stringify(body)) : init);
    if (!response.ok) return response;
    call.began();
    return tapped(response, (text) => call.answeredText(text));
  };
  originals.set(fetch, original);
  remember(fetch, memory);
  return client.withOptions({ fetch } as never) as Client;
}

/** Let `flush` find the memory of a client's fetch or of a middleware. */
export function remember(owner: object, memory: Memory): void {
  memories.set(owner, memory);
}

/**
 * Wait until the messages of a client of `withMemory`, or of a middleware, are stored: before a program ends, or before a
 * serverless function returns.
 *
 * @param timeoutMs Maximum wait, in milliseconds (10,000). Later messages are sent while the program runs.
 * @returns How many messages are still waiting, and how many were dropped since the last call.
 * @throws TypeError If it has no memory.
 */
export async function flush(owner: object, timeoutMs = FLUSH_TIMEOUT_MS): Promise<FlushResult> {
  const memory = memories.get(owner) ?? memories.get(fetchOf(owner) ?? owner);
  if (!memory) throw new TypeError("flush takes a client of withMemory, or a middleware of souvenirMiddleware");
  return memory.flush(timeoutMs);
}

/** The fetch of an SDK's client, which is private in its types. */
function fetchOf(client: object): Fetch | undefined {
  const { fetch } = client as { fetch?: unknown };
  return typeof fetch === "function" ? (fetch as Fetch) : undefined;
}

/** The model call of a request; undefined for any other request. */
function callOf(memory: Memory, input: Parameters<Fetch>[0], init: RequestInit | undefined): ModelCall | undefined {
  if (init?.method?.toUpperCase() !== "POST" || typeof init.body !== "string") return undefined;
  const url = input instanceof Request ? input.url : String(input);
  const body: unknown = memory.guarded("A question", () => JSON.parse(init.body as string));
  const wire = isRecord(body) ? wireOf(url, body) : undefined;
  return wire && isRecord(body) ? memory.begin(wire, body) : undefined;
}

/** Whether the SDK repeats a request, which it says in a header. */
function isRepeated(init: RequestInit): boolean {
  return Number(new Headers(init.headers).get("x-stainless-retry-count")) > 0;
}

/** The request with another body, whose length is no longer that of the header. */
function withBody(init: RequestInit, body: string): RequestInit {
  const headers = new Headers(init.headers);
  headers.delete("content-length");
  return { ...init, body, headers };
}
