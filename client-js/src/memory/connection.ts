/** The state of a program for one service: its client, its queue, its outages. There is one for each address and key. */

import { addressOf, type SouvenirOptions } from "../address.js";
import type { Output } from "../calls.js";
import { Souvenir } from "../client.js";
import { Capture } from "./capture.js";
import { Contexts } from "./contexts.js";
import { Outage } from "./outages.js";
import { KnownPrefixes } from "./prefixes.js";
import type { Place } from "./storage.js";

/** Messages are embedded first, and no caller waits for that. */
const STORING_TIMEOUT_MS = 30_000;
/** Share of the caller's timeout that the service gets for a context: the rest is for the network. */
const DEADLINE_SHARE = 0.9;

export class Connection {
  readonly contexts: Contexts;
  readonly capture: Capture;
  readonly prefixes = new KnownPrefixes();

  constructor(
    url: string,
    private readonly souvenir: Souvenir,
  ) {
    const outage = new Outage(url);
    this.contexts = new Contexts(url, outage);
    this.capture = new Capture(
      ({ agent, sessionId }, messages, key) =>
        souvenir.messages.addBatch({ agent_name: agent, session_id: sessionId, messages, idempotency_key: key }),
      outage,
    );
  }

  /** @throws SouvenirError If there is none. */
  context(
    place: Place,
    query: string,
    maxTokens: number | undefined,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<Output<"build_context">> {
    const deadlineMs = Math.max(1, Math.floor(timeoutMs * DEADLINE_SHARE));
    const about = { session_id: place.sessionId, user: place.user, max_tokens: maxTokens, deadline_ms: deadlineMs };
    return this.souvenir.context.build(place.agent, { query, ...about }, { signal });
  }
}

const connections = new Map<string, Connection>();

/**
 * The connection of this program, created on first use.
 *
 * @throws TypeError If an option is invalid.
 */
export function connectionOf({ serverUrl, apiKey }: Pick<SouvenirOptions, "serverUrl" | "apiKey">): Connection {
  const { url, apiKey: key = "" } = addressOf({ serverUrl, apiKey });
  const name = JSON.stringify([url, key]);
  const limits = { timeoutMs: STORING_TIMEOUT_MS, maxRetries: 0 };
  const found = connections.get(name) ?? new Connection(url, new Souvenir({ serverUrl: url, apiKey: key, ...limits }));
  connections.set(name, found);
  return found;
}
