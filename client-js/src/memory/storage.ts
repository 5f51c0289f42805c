/**
 * Stores messages in spite of failures: retries what is safe to retry, and reports refusals.
 *
 * A request keeps its Idempotency-Key over its retries, so nothing is stored twice. While the service is unavailable,
 * requests are retried until it answers.
 */

import { ApiError, ConnectionFailed, SouvenirError } from "../errors.js";
import { newKey } from "../transport.js";
import type { StoredMessage } from "./messages.js";
import type { Outage } from "./outages.js";

/** Limits of a request: it is embedded well within the request's timeout, and is far below the largest body. */
export const MAX_BATCH_TURNS = 50;
const MAX_BATCH_CHARS = 500_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
/**
 * After this time, a request that the service fails at is dropped, because others wait. A request that does not reach the
 * service is retried without limit.
 */
const GIVE_UP_MS = 120_000;
/** How long the retries of a request keep a process of Node alive that has nothing else to do. */
const KEEPS_ALIVE_MS = 2_000;

/** The agent, the session and the user of a message. */
export interface Place {
  readonly agent: string;
  readonly sessionId: string;
  readonly user: string | undefined;
}

/** Sends one request, with its Idempotency-Key. */
export type Send = (place: Place, messages: StoredMessage[], key: string) => Promise<unknown>;

export class Storage {
  readonly #warned = new Set<string>();

  constructor(
    private readonly send: Send,
    private readonly outage: Outage,
  ) {}

  /** Returns the number of dropped messages. */
  async store(place: Place, messages: readonly StoredMessage[]): Promise<number> {
    let dropped = 0;
    for (const part of parts(messages)) dropped += await this.#store(place, part);
    return dropped;
  }

  /** Store all messages that the service accepts. Returns the number of dropped messages. */
  async #store(place: Place, messages: StoredMessage[]): Promise<number> {
    try {
      await this.#storeOnce(place, messages);
      return 0;
    } catch (error) {
      if (!(error instanceof SouvenirError)) throw error;
      if (!(error instanceof ApiError) || !isRefusal(error)) return messages.length;
      if (error.status === 422 && messages.length > 1) {
        let dropped = 0;
        for (const message of messages) dropped += await this.#store(place, [message]);
        return dropped;
      }
      this.#warn(place.agent, error);
      return messages.length;
    }
  }

  /** @throws SouvenirError If they are refused, or the service keeps failing for too long. */
  async #storeOnce(place: Place, messages: StoredMessage[]): Promise<void> {
    const key = newKey();
    const begin = performance.now();
    for (let attempt = 0; ; attempt += 1) {
      try {
        await this.send(place, messages, key);
        this.outage.worked("capture");
        return;
      } catch (error) {
        if (!(error instanceof SouvenirError)) throw error;
        const lasted = performance.now() - begin;
        if (isRefusal(error)) {
          this.outage.worked("capture");
          throw error;
        }
        if (lasted > GIVE_UP_MS && !(error instanceof ConnectionFailed)) throw error;
        this.outage.failed("capture", error.message);
        await pause(pauseMs(error, attempt), lasted < KEEPS_ALIVE_MS);
      }
    }
  }

  #warn(agent: string, error: ApiError): void {
    const reason = JSON.stringify([agent, error.status, error.code]);
    if (this.#warned.has(reason)) return;
    this.#warned.add(reason);
    console.warn(`Turns of agent ${agent} are dropped: the service refused them: ${error.message}`);
  }
}

/**
 * Whether the service itself refuses the request, so that a retry is useless.
 *
 * Refusals of a proxy are temporary, and have no `code`.
 */
function isRefusal(error: SouvenirError): boolean {
  if (!(error instanceof ApiError) || !error.code) return false;
  return error.status >= 400 && error.status < 500 && ![408, 429].includes(error.status);
}

/** The delay; it grows with the attempts, even if the service requests none. */
function pauseMs(error: SouvenirError, attempt: number): number {
  const wishedMs = (error instanceof ApiError ? (error.retryAfterS ?? 0) : 0) * 1000;
  return Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS * 2 ** Math.min(attempt, 10), wishedMs));
}

function pause(ms: number, keepsAlive: boolean): Promise<void> {
  return new Promise((resolve) => {
    const timer: unknown = setTimeout(resolve, ms);
    // Timers of browsers are numbers, and keep nothing alive.
    if (!keepsAlive && typeof timer === "object") (timer as NodeJS.Timeout).unref?.();
  });
}

/** Split the messages into requests of bounded size. */
function* parts(messages: readonly StoredMessage[]): Generator<StoredMessage[]> {
  let part: StoredMessage[] = [];
  let chars = 0;
  for (const message of messages) {
    chars += message.content.length;
    if (part.length && (part.length === MAX_BATCH_TURNS || chars > MAX_BATCH_CHARS)) {
      yield part;
      part = [];
      chars = message.content.length;
    }
    part.push(message);
  }
  if (part.length) yield part;
}
