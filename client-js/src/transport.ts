/** Sends calls with openapi-fetch, and retries those that are safe to repeat. */

import createClient from "openapi-fetch";
import type { Address } from "./address.js";
import {
  headerValue,
  isRecord,
  NOT_FROM_PROXIES,
  pathOf,
  pauseBeforeRepeat,
  refusalOf,
  type Call,
  type CallOptions,
  type Failure,
  type StreamEvent,
} from "./calls.js";
import { ApiError, ConnectionFailed, SouvenirError, TimedOut, UnreadableAnswer } from "./errors.js";
import { SseParser } from "./sse.js";
import { Deadline, sleep } from "./time.js";

type Send = (method: string, path: string, init: object) => Promise<{ data?: unknown; error?: unknown; response: Response }>;

/** Errors of Node's fetch before a request is sent; other runtimes do not tell. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

export class Transport {
  readonly #send: Send;

  constructor(readonly address: Address) {
    // The types of an operation are those of its method in a group.
    this.#send = createClient<Record<string, never>>({ baseUrl: address.url }).request as unknown as Send;
  }

  /**
   * Send the call and return its parsed answer.
   *
   * @throws SouvenirError See errors.ts.
   */
  async send<Result>(call: Call, options: CallOptions = {}): Promise<Result> {
    const [path, init] = [pathOf(call), this.#initOf(call)];
    for (let attempt = 0; ; attempt += 1) {
      const deadline = new Deadline(options.signal, options.timeoutMs ?? this.address.timeoutMs);
      try {
        return (await this.#attempt(call.method, path, { ...init, signal: deadline.signal })) as Result;
      } catch (error) {
        const failure = this.#failureOf(error, deadline);
        const pauseMs = pauseBeforeRepeat(call, failure, attempt);
        if (pauseMs === undefined || attempt >= this.address.maxRetries) throw failure.error;
        await sleep(pauseMs, options.signal);
      } finally {
        deadline.close();
      }
    }
  }

  /** Stream the objects of an NDJSON answer; never retried. */
  async *lines(call: Call, options: CallOptions = {}): AsyncGenerator<Record<string, unknown>, void, undefined> {
    let rest = "";
    for await (const text of this.#texts(call, options)) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.trim()) yield this.#record(call, line);
    }
    if (rest.trim()) yield this.#record(call, rest);
  }

  /**
   * Stream the events of an answer; never retried. It ends when the service ends the stream; `last_event_id` of a new
   * call continues after an event.
   */
  async *events(call: Call, options: CallOptions = {}): AsyncGenerator<StreamEvent, void, undefined> {
    const parser = new SseParser();
    for await (const text of this.#texts(call, options)) {
      for (const { fields, data } of parser.push(text)) {
        yield { id: Number(fields.get("id")), type: fields.get("event") ?? "message", data: this.#record(call, data) };
      }
    }
  }

  /** Stream the bytes of an answer; never retried. */
  async *pieces(call: Call, options: CallOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const deadline = new Deadline(options.signal, options.timeoutMs ?? this.address.timeoutMs);
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    try {
      const init = { ...this.#initOf(call), parseAs: "stream", signal: deadline.signal };
      const { data, error, response } = await this.#send(call.method, pathOf(call), init);
      if (!response.ok) throw this.#refusal(response, error);
      reader = (data as ReadableStream<Uint8Array> | null | undefined)?.getReader();
      for (;;) {
        deadline.restart();
        const part = await reader?.read();
        if (!part || part.done) return;
        deadline.stop();
        yield part.value;
      }
    } catch (error) {
      throw this.#failureOf(error, deadline).error;
    } finally {
      deadline.close();
      // Closes the connection of an answer that was not read to its end.
      await reader?.cancel().catch(() => undefined);
    }
  }

  async *#texts(call: Call, options: CallOptions): AsyncGenerator<string, void, undefined> {
    const decoder = new TextDecoder();
    for await (const piece of this.pieces(call, options)) yield decoder.decode(piece, { stream: true });
  }

  async #attempt(method: string, path: string, init: object): Promise<unknown> {
    const { data, error, response } = await this.#send(method, path, init);
    if (!response.ok) throw this.#refusal(response, error);
    const value = this.#parsed(String(data));
    return Array.isArray(value) ? withHeaders(value, response.headers) : value;
  }

  /** The arguments of openapi-fetch, the same for each attempt. */
  #initOf(call: Call): object {
    const given = Object.entries(call.input ?? {}).filter(([, value]) => value !== undefined);
    const query = new Set(call.query);
    const named = new Map((call.headers ?? []).map((name) => [name.toLowerCase().replaceAll("-", "_"), name]));
    const headers = new Headers({ Accept: "application/json" });
    for (const [name, value] of given) {
      const header = named.get(name);
      if (header && value !== null) headers.set(header, headerValue(value));
    }
    const { apiKey, namespace } = this.address;
    if (apiKey !== undefined) headers.set("X-API-Key", headerValue(apiKey));
    if (namespace !== undefined) headers.set("X-Namespace", headerValue(namespace));
    if (call.repeat === "keyed" && !headers.has("Idempotency-Key")) headers.set("Idempotency-Key", newKey());
    if (call.content !== undefined) headers.set("Content-Type", "application/x-ndjson");
    const body = call.hasBody ? given.filter(([name]) => !query.has(name) && !named.has(name)) : undefined;
    return {
      headers,
      parseAs: "text",
      // A redirect would send the key to another server.
      redirect: "manual",
      params: { query: Object.fromEntries(given.filter(([name]) => query.has(name))) },
      ...(body ? { body: Object.fromEntries(body) } : {}),
      ...(call.content === undefined ? {} : { body: call.content, bodySerializer: (content: unknown) => content }),
    };
  }

  #refusal(response: Response, body: unknown): SouvenirError {
    const { url } = this.address;
    if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
      return new UnreadableAnswer(url, `it redirects to ${response.headers.get("location") ?? "another address"}`);
    }
    if (!isRecord(body) && NOT_FROM_PROXIES.has(response.status)) {
      return new UnreadableAnswer(url, `it answers ${response.status} ${response.statusText}`.trimEnd());
    }
    return refusalOf(response, body);
  }

  /**
   * The failure of an attempt, with the error to throw.
   *
   * @throws What no retry helps against: the reason of the caller's signal, and an unreadable answer.
   */
  #failureOf(error: unknown, deadline: Deadline): Failure & { error: SouvenirError } {
    if (deadline.isAborted) throw deadline.reason;
    if (error instanceof ApiError) return { error, isUnsent: false, refusal: error };
    if (error instanceof SouvenirError) throw error;
    if (deadline.isOver) return { error: new TimedOut(this.address.url, deadline.timeoutMs), isUnsent: false };
    const { code, reason } = networkError(error);
    const failed = new ConnectionFailed(this.address.url, reason, { cause: error });
    return { error: failed, isUnsent: UNSENT.has(code) };
  }

  #parsed(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new UnreadableAnswer(this.address.url, String(error));
    }
  }

  #record(call: Call, text: string): Record<string, unknown> {
    const value = this.#parsed(text);
    if (!isRecord(value)) throw new UnreadableAnswer(this.address.url, `a line of ${call.path} is not an object`);
    return value;
  }
}

/** A new Idempotency-Key. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function withHeaders(items: unknown[], headers: Headers): unknown[] {
  const total = headers.get("x-total-count") ?? "";
  // Not enumerable, so that the array compares and prints as the plain array that it is.
  return Object.defineProperties(items, {
    headers: { value: headers },
    total: { value: /^\d+$/.test(total) ? Number(total) : undefined },
  });
}

/** Code and message of an error of fetch; Node has them in its cause, or in those of several addresses. */
function networkError(error: unknown): { code: string; reason: string } {
  const cause: unknown = error instanceof Error ? (error.cause ?? error) : error;
  const [first]: unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  const found = first instanceof Error ? first : undefined;
  const code = String((found as { code?: unknown } | undefined)?.code ?? "");
  return { code, reason: found?.message || code || String(error) };
}
