/**
 * The capture of messages: one bounded queue for each connection.
 *
 * Messages of one place (agent, session, user) are stored in order, several in a request. Messages that the service
 * refuses, and messages that find the queue full, are dropped and counted. Nothing here throws into the caller's code.
 */

import { messageOf } from "./messages.js";
import type { Outage } from "./outages.js";
import { MAX_BATCH_TURNS, Storage, type Place, type Send } from "./storage.js";
import type { Turn } from "./wires/turns.js";

const MAX_WAITING_TURNS = 1_000;
/** Delay to batch messages, unless a caller waits: question and answer are one request. */
const LINGER_MS = 100;

/** The number of messages that are not stored yet, and of those that never will be. */
export interface FlushResult {
  waiting: number;
  dropped: number;
}

/** Turns of one request or answer. */
interface Said {
  readonly place: Place;
  readonly turns: readonly Turn[];
  /** The owner whose flush waits for them. */
  readonly owner: object;
  readonly at: Date;
}

class Account {
  waiting = 0;
  dropped = 0;
  /** Called when nothing waits any more. */
  settled: (() => void)[] = [];
}

export class Capture {
  readonly #storage: Storage;
  readonly #accounts = new WeakMap<object, Account>();
  #queue: Said[] = [];
  #waiting = 0;
  #isRunning = false;
  #hurries = 0;
  #wake: () => void = () => undefined;

  constructor(send: Send, outage: Outage) {
    this.#storage = new Storage(send, outage);
  }

  /** Queue turns. */
  put(owner: object, place: Place, turns: readonly Turn[]): void {
    if (!turns.length) return;
    const account = this.#account(owner);
    if (this.#waiting + turns.length > MAX_WAITING_TURNS) {
      account.dropped += turns.length;
      return;
    }
    this.#queue.push({ place, turns, owner, at: new Date() });
    this.#waiting += turns.length;
    account.waiting += turns.length;
    if (this.#isUrgent()) this.#wake();
    if (!this.#isRunning) void this.#run();
  }

  /** Wait until no messages of the owner wait, for at most `timeoutMs` milliseconds. */
  async flush(owner: object, timeoutMs: number): Promise<FlushResult> {
    const account = this.#account(owner);
    if (account.waiting) {
      this.#hurries += 1;
      this.#wake();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        account.settled.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
      this.#hurries -= 1;
    }
    const { waiting, dropped } = account;
    account.dropped = 0;
    return { waiting, dropped };
  }

  #account(owner: object): Account {
    const account = this.#accounts.get(owner) ?? new Account();
    this.#accounts.set(owner, account);
    return account;
  }

  #isUrgent(): boolean {
    return this.#hurries > 0 || this.#waiting >= MAX_BATCH_TURNS;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#queue.length) {
      await this.#linger();
      const batch = this.#next();
      const turns = batch.reduce((sum, said) => sum + said.turns.length, 0);
      this.#end(batch, await this.#store(batch).catch((error: unknown) => this.#report(error, turns)));
    }
    this.#isRunning = false;
  }

  /** Returns how many turns were dropped. */
  async #store(batch: readonly Said[]): Promise<number> {
    const [first] = batch;
    if (!first) return 0;
    const messages = batch.flatMap((said) => said.turns.map((turn) => messageOf(turn, said.at, said.place.user)));
    return this.#storage.store(first.place, messages.filter((message) => message !== undefined));
  }

  #report(error: unknown, turns: number): number {
    console.warn("Turns could not be captured", error);
    return turns;
  }

  #linger(): Promise<void> {
    if (this.#isUrgent()) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, LINGER_MS);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** The next turns of one place. Later turns of the same place must not overtake earlier ones. */
  #next(): Said[] {
    const key = (said: Said) => JSON.stringify([said.place.agent, said.place.sessionId, said.place.user]);
    const place = this.#queue[0] && key(this.#queue[0]);
    const batch: Said[] = [];
    const rest: Said[] = [];
    let turns = 0;
    for (const said of this.#queue) {
      const isNext = key(said) === place && (!turns || turns + said.turns.length <= MAX_BATCH_TURNS);
      (isNext ? batch : rest).push(said);
      if (key(said) === place) turns = isNext ? turns + said.turns.length : MAX_BATCH_TURNS;
    }
    this.#queue = rest;
    return batch;
  }

  #end(batch: readonly Said[], dropped: number): void {
    for (const said of batch) {
      const account = this.#account(said.owner);
      const lost = Math.min(dropped, said.turns.length);
      dropped -= lost;
      account.dropped += lost;
      account.waiting -= said.turns.length;
      this.#waiting -= said.turns.length;
      if (!account.waiting) account.settled.splice(0).forEach((settle) => settle());
    }
  }
}
