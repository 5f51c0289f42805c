/**
 * The recognition of messages that were captured before, by digests of the conversation up to them.
 *
 * Callers send the whole conversation with each call. The new part of a call is everything after its longest known
 * prefix. Digests cover the messages of users and tools by position, not those of assistants, because callers shorten and
 * reformat answers before they send them back.
 *
 * Rules, for one conversation (tests/prefixes.test.ts has them as a table):
 *
 * - Of an unknown history, only the part from the user's last message on is new.
 * - The same applies to a truncated or edited history; but results of tools after a user's message do not make that
 *   message new again.
 * - An answer was captured when it arrived, so it is not new in the history that contains it.
 * - An identical request is a retry and adds nothing, unless it was answered: then the user repeated the last message.
 *
 * Bounded: the least recently used digests are dropped, as if they had never been seen.
 */

import { digest } from "./digest.js";
import type { Turn } from "./wires/turns.js";

/** Maximum number of digests, of about 200 bytes each. */
const MAX_KNOWN = 50_000;

/** The progress of a request, in its order: an answer that began may have broken off. */
export const Progress = { ASKED: 0, ANSWERING: 1, ANSWERED: 2 } as const;
export type Progress = (typeof Progress)[keyof typeof Progress];

/** The progress of the request that ended with a known digest. */
interface Mark {
  progress: Progress;
}

/** A turn that is part of the digests, with its index in the request. */
interface Step {
  index: number;
  digest: string;
}

/** The new part of a request. */
export class News {
  constructor(
    /** In order. */
    readonly turns: readonly Turn[],
    /** Identifies the conversation. */
    readonly conversation: string,
    /**
     * Digest of the user's last message in its conversation, the same throughout a tool loop; undefined if the request
     * has no message of a user.
     */
    readonly question: string | undefined,
    /** Whether tools answered since that message. */
    readonly isInLoop: boolean,
    private readonly marks: readonly Mark[],
  ) {}

  /** Record the progress of the request, or of one of its answers. */
  note(progress: Progress): void {
    for (const mark of this.marks) if (progress > mark.progress) mark.progress = progress;
  }
}

export class KnownPrefixes {
  readonly #known = new Map<string, Mark>();

  constructor(private readonly maxKnown = MAX_KNOWN) {}

  /**
   * The new part of a request, which is known from now on: of concurrent requests, one gets each message.
   *
   * @param conversation Identifies it, for example by agent and session.
   */
  take(conversation: readonly string[], turns: readonly Turn[]): News {
    const lastUser = turns.findLastIndex((turn) => turn.role === "user");
    const begin = Math.max(lastUser, 0);
    const seed = digest("", ...conversation);
    const whole = steps(digest(seed, "whole"), turns, 0);
    const tail = steps(digest(seed, "tail"), turns, begin);
    const start = this.#start(turns, whole, tail, begin);
    for (const step of [...whole.filter((one) => one.index >= start), ...whole.slice(-1), ...tail]) {
      const isSaidNow = start === turns.length - 1 && start === step.index;
      const kept = this.#known.get(step.digest);
      this.#keep(step.digest, isSaidNow || !kept ? { progress: Progress.ASKED } : kept);
    }
    const marks = [whole, tail].flatMap((all) => all.slice(-1).map((step) => this.#known.get(step.digest) as Mark));
    this.#forget();
    const question = lastUser < 0 ? undefined : tail[0]?.digest;
    return new News(turns.slice(start, endOf(turns)), seed, question, lastUser >= 0 && tail.length > 1, marks);
  }

  /** Index of the first turn that is new. */
  #start(turns: readonly Turn[], whole: readonly Step[], tail: readonly Step[], begin: number): number {
    const known = this.#lastKnown(whole);
    if (!known) {
      const loop = tail.length > 1 ? this.#lastKnown(tail) : undefined;
      return loop ? this.#after(loop, turns) : begin;
    }
    const isSaidAgain =
      known.index === turns.length - 1 &&
      turns[known.index]?.role === "user" &&
      this.#known.get(known.digest)?.progress === Progress.ANSWERED;
    return isSaidAgain ? known.index : this.#after(known, turns);
  }

  #lastKnown(all: readonly Step[]): Step | undefined {
    return all.findLast((step) => this.#known.has(step.digest));
  }

  /** The start of the part after a known message; its answer is not new if one was captured. */
  #after(known: Step, turns: readonly Turn[]): number {
    let start = known.index + 1;
    if (this.#known.get(known.digest)?.progress !== Progress.ASKED) {
      while (turns[start]?.role === "assistant") start += 1;
    }
    return start;
  }

  #keep(key: string, mark: Mark): void {
    this.#known.delete(key);
    this.#known.set(key, mark);
  }

  #forget(): void {
    for (const key of this.#known.keys()) {
      if (this.#known.size <= this.maxKnown) return;
      this.#known.delete(key);
    }
  }
}

/** The end without an assistant prefill, which is no separate turn. */
function endOf(turns: readonly Turn[]): number {
  return turns.findLastIndex((turn) => turn.role !== "assistant") + 1;
}

function steps(seed: string, turns: readonly Turn[], begin: number): Step[] {
  let last = seed;
  return turns.flatMap((turn, index) => {
    if (index < begin || turn.role === "assistant") return [];
    // Not the tool's name, which is unknown unless the history contains the call.
    const call = turn.metadata.tool_result?.tool_call_id ?? "";
    last = digest(last, turn.role, turn.content, call, JSON.stringify(turn.metadata.attachments ?? null));
    return [{ index, digest: last }];
  });
}
