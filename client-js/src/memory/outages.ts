/**
 * The availability of the memory service: one warning per outage, and no requests for some seconds.
 *
 * An outage begins with the first failure and ends when neither contexts nor captures fail any more; nothing is logged in
 * between.
 */

/** The parts that use the service, as named in the warning. */
export type Use = "context" | "capture";

/** How long model calls make no request after a failure: an outage costs one waiting call per period. */
const COOL_DOWN_MS = 5_000;

export class Outage {
  readonly #failing = new Set<Use>();
  #askAgainAt = 0;

  constructor(private readonly url: string) {}

  /** Whether context may be requested now. During an outage, one call is allowed after each cool-down. */
  mayAsk(): boolean {
    if (!this.#failing.has("context")) return true;
    if (performance.now() < this.#askAgainAt) return false;
    this.#askAgainAt = performance.now() + COOL_DOWN_MS;
    return true;
  }

  failed(part: Use, reason: string): void {
    const begins = !this.#failing.size;
    this.#failing.add(part);
    if (part === "context") this.#askAgainAt = performance.now() + COOL_DOWN_MS;
    if (begins) console.warn(`Model calls continue without the memory of ${this.url} (${part} failed): ${reason}`);
  }

  worked(part: Use): void {
    if (this.#failing.delete(part) && !this.#failing.size) {
      console.info(`The memory of ${this.url} is available again`);
    }
  }
}
