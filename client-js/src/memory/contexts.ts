/**
 * The context of a model call: requested within a hard time limit, and the same throughout a tool loop.
 *
 * While the service fails, most calls make no request (`Outage`).
 */

import { isRecord } from "../calls.js";
import type { components } from "../generated/api.js";
import { NotFound, Overloaded, SouvenirError, UnreadableAnswer } from "../errors.js";
import { sleep } from "../time.js";
import { prefaced } from "./messages.js";
import type { Outage } from "./outages.js";
import type { News } from "./prefixes.js";

type Context = components["schemas"]["ContextResponse"];

/** Maximum number of cached contexts of questions whose tool loop may still run. */
const MAX_KEPT = 1_000;
const LEAST_PAUSE_MS = 500;

/** The context of a model call: `stable` changes only with the blocks, `tail` with each question; "" means none. */
export interface Shown {
  stable: string;
  tail: string;
}

export class Contexts {
  readonly #kept = new Map<string, Shown>();

  constructor(
    private readonly url: string,
    private readonly outage: Outage,
  ) {}

  /**
   * The context that was added for the question of a tool loop or of a repeated request; undefined otherwise.
   *
   * If the vendor stores the conversation, the requests of a loop contain no question. The vendor then has the tail, but
   * not the instructions, which are sent with each request.
   */
  kept(news: News, isRepeated: boolean): Shown | undefined {
    if (news.question === undefined) {
      const last = this.#kept.get(news.conversation);
      return last && { ...last, tail: "" };
    }
    return news.isInLoop || isRepeated ? this.#kept.get(news.question) : undefined;
  }

  /**
   * Undefined if there is none within `timeoutMs` milliseconds.
   *
   * @throws The reason of the signal, if the caller aborts the model call.
   */
  async ask(
    news: News,
    build: (signal: AbortSignal) => Promise<Context>,
    timeoutMs: number,
    signal?: AbortSignal | null,
  ): Promise<Shown | undefined> {
    if (!this.outage.mayAsk()) return undefined;
    const limit = AbortSignal.timeout(timeoutMs);
    try {
      const context = await patiently(() => build(signal ? AbortSignal.any([limit, signal]) : limit), timeoutMs);
      // Another program may answer at the address.
      if (!isContext(context)) throw new UnreadableAnswer(this.url, "it is not a context");
      const tail = prefaced(context.volatile_tail, context.evidence === "none");
      return this.#answered(news, { stable: prefaced(context.stable_prefix), tail });
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      // The agent is new: it is created by the first message that is stored.
      if (error instanceof NotFound) return this.#answered(news, { stable: "", tail: "" });
      if (limit.aborted) this.outage.failed("context", `no answer within ${timeoutMs} ms`);
      else if (error instanceof SouvenirError) this.outage.failed("context", error.message);
      else throw error;
      return undefined;
    }
  }

  #answered(news: News, shown: Shown): Shown {
    this.outage.worked("context");
    for (const key of [news.conversation, news.question]) {
      if (key === undefined) continue;
      this.#kept.delete(key);
      this.#kept.set(key, shown);
    }
    for (const key of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEPT) break;
      this.#kept.delete(key);
    }
    return shown;
  }
}

function isContext(answer: unknown): boolean {
  return isRecord(answer) && typeof answer["stable_prefix"] === "string" && typeof answer["volatile_tail"] === "string";
}

/** Ask an overloaded service again after the delay that it requests, as long as the caller waits. */
async function patiently(build: () => Promise<Context>, timeoutMs: number): Promise<Context> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await build();
    } catch (error) {
      if (!(error instanceof Overloaded)) throw error;
      const pauseMs = Math.max(LEAST_PAUSE_MS, (error.retryAfterS ?? 0) * 1000);
      if (performance.now() + pauseMs > end) throw error;
      await sleep(pauseMs);
    }
  }
}
