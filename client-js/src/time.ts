/** Waiting with a limit, and with a signal that ends the wait. */

/** The longest delay of a timer in JavaScript, in milliseconds; a longer one would be none. */
export const LONGEST_DELAY_MS = 2 ** 31 - 1;

/** A signal that aborts after a time, or when another signal aborts. Times are in milliseconds. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;
  readonly #abort = () => this.#controller.abort(this.#outer?.reason);

  constructor(
    outer: AbortSignal | undefined,
    readonly timeoutMs: number,
  ) {
    this.#outer = outer;
    if (outer?.aborted) this.#abort();
    outer?.addEventListener("abort", this.#abort, { once: true });
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether the caller aborted, and why. */
  get isAborted(): boolean {
    return this.#outer?.aborted ?? false;
  }

  get reason(): unknown {
    return this.#outer?.reason;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Begin the time again. */
  restart(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isOver = true;
      this.#controller.abort();
    }, this.timeoutMs);
  }

  /** Stop the clock; the outer signal still ends what runs, until `close`. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Stop the clock, and leave the outer signal. */
  close(): void {
    this.stop();
    this.#outer?.removeEventListener("abort", this.#abort);
  }
}

/** @throws The reason of the signal, if it aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}
