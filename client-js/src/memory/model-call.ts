/**
 * A model call with memory: its messages are captured, and it is sent with context.
 *
 * Invariants: the caller's arguments are never changed. A failure here is logged and leaves the call as it would be
 * without memory. A call waits only for its context, for at most `timeoutMs`.
 */

import { isPrintable } from "../address.js";
import { isRecord } from "../calls.js";
import { SseParser } from "../sse.js";
import type { FlushResult } from "./capture.js";
import { connectionOf, type Connection } from "./connection.js";
import { cut, storable } from "./messages.js";
import { Progress, type News } from "./prefixes.js";
import type { Place } from "./storage.js";
import type { Wire } from "./wires/index.js";
import type { Fields } from "./wires/shapes.js";
import type { Turn } from "./wires/turns.js";

const MAX_NAME_CHARS = 200;
/** Minimum budget that the service accepts. */
const LEAST_TOKENS = 64;

export interface MemoryOptions {
  /** The agent whose memory is used, a namespace of the service. It is created if it is new. */
  agent: string;
  /** Default: SOUVENIR_URL or MEMORY_SERVER_URL of the environment, then http://127.0.0.1:8900. */
  serverUrl?: string;
  /** Default: SOUVENIR_API_KEY of the environment. */
  apiKey?: string;
  /** Store messages, and add no context to model calls. */
  captureOnly?: boolean;
  /** Id of the conversation. Default: a new one. */
  sessionId?: string;
  /** The user that the agent talks with. Only messages with this user are recalled. */
  user?: string;
  /** Maximum wait of a model call for its context, in milliseconds (1,000). */
  timeoutMs?: number;
  /** Token budget of the context, at least 64. Default: that of the service. */
  maxTokens?: number;
}

/** The memory of an agent in one conversation. */
export class Memory {
  readonly place: Place;
  readonly connection: Connection;
  readonly timeoutMs: number;

  /** @throws TypeError If an option is invalid. */
  constructor(readonly options: MemoryOptions) {
    const { agent, sessionId = crypto.randomUUID(), user, maxTokens = LEAST_TOKENS, timeoutMs = 1_000 } = options;
    for (const [what, name] of Object.entries({ agent, sessionId, user })) if (name !== undefined) checkName(what, name);
    if (!(maxTokens >= LEAST_TOKENS)) throw new TypeError(`maxTokens must be ${LEAST_TOKENS} or above`);
    if (!(timeoutMs > 0)) throw new TypeError("timeoutMs must be above 0");
    this.place = { agent, sessionId, user };
    this.timeoutMs = timeoutMs;
    this.connection = connectionOf(options);
  }

  /** The call with this body, whose new messages are queued; undefined if it cannot be captured. */
  begin(wire: Wire, body: Fields): ModelCall | undefined {
    return this.guarded("A question", () => new ModelCall(this, wire, body));
  }

  flush(timeoutMs: number): Promise<FlushResult> {
    return this.connection.capture.flush(this, timeoutMs);
  }

  put(turns: readonly Turn[]): void {
    this.connection.capture.put(this, this.place, turns);
  }

  /** The boundary to the caller: the model is called without us if anything here fails. */
  guarded<Result>(what: string, run: () => Result): Result | undefined {
    try {
      return run();
    } catch (error) {
      console.warn(`${what} of agent ${this.place.agent} could not be captured or added`, error);
      return undefined;
    }
  }
}

/** A model call, from queueing its new messages before it is sent until its answer is captured. */
export class ModelCall {
  readonly #query: string;
  readonly #news: News;

  constructor(
    private readonly memory: Memory,
    private readonly wire: Wire,
    private readonly body: Fields,
  ) {
    const turns = wire.turns(body);
    const asked = turns.findLast((turn) => turn.role === "user" && turn.content.trim());
    this.#query = storable(cut(asked?.content ?? ""));
    const { agent, sessionId, user = "" } = memory.place;
    this.#news = memory.connection.prefixes.take([agent, sessionId, user], turns);
    memory.put(this.#news.turns);
  }

  /**
   * The body with the context; undefined if there is none, so that the caller's own is sent.
   *
   * @param isRepeated Whether the SDK repeats a request that failed: it is sent with the same context.
   * @throws The reason of the signal, if the caller aborts the model call.
   */
  async withContext(isRepeated: boolean, signal?: AbortSignal | null): Promise<Fields | undefined> {
    const { captureOnly, maxTokens } = this.memory.options;
    const { connection, place, timeoutMs } = this.memory;
    if (captureOnly) return undefined;
    let shown = connection.contexts.kept(this.#news, isRepeated);
    if (!shown && this.#news.question !== undefined && this.#query) {
      const build = (limit: AbortSignal) => connection.context(place, this.#query, maxTokens, timeoutMs, limit);
      shown = await connection.contexts.ask(this.#news, build, timeoutMs, signal);
    }
    if (!shown?.stable && !shown?.tail) return undefined;
    const { stable, tail } = shown;
    return this.memory.guarded("A context", () => this.wire.placed(this.body, stable, tail));
  }

  /** An answer begins. */
  began(): void {
    this.#news.note(Progress.ANSWERING);
  }

  /** Capture the text of an answer, or the part of it that was received: JSON, or server-sent events. */
  answeredText(text: string): void {
    this.memory.guarded("An answer", () => {
      const payload = recordOf(text);
      const parser = new SseParser();
      const read = () => [...parser.push(text), ...parser.end()].map((event) => recordOf(event.data));
      this.#answered(payload ? this.wire.answer(payload) : this.wire.streamed(read().filter((one) => one !== undefined)));
    });
  }

  /** Capture an answer that is there as a value. */
  answeredValue(payload: Fields): void {
    this.memory.guarded("An answer", () => this.#answered(this.wire.answer(payload)));
  }

  /** Capture the events of a stream, as far as they were received. */
  answeredEvents(events: readonly Fields[]): void {
    this.memory.guarded("An answer", () => this.#answered(this.wire.streamed(events)));
  }

  #answered(turns: readonly Turn[]): void {
    const isWhole = turns.length > 0 && !turns.some((turn) => turn.metadata.incomplete);
    this.#news.note(isWhole ? Progress.ANSWERED : Progress.ANSWERING);
    this.memory.put(turns);
  }
}

function recordOf(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** @throws TypeError If the service does not accept the name. */
function checkName(what: string, name: string): void {
  if (!name || name.length > MAX_NAME_CHARS || !isPrintable(name) || name.includes("/") || /^\.\.?$/.test(name)) {
    throw new TypeError(`${what} must have 1 to ${MAX_NAME_CHARS} printable characters without /: ${JSON.stringify(name)}`);
  }
}
