import { Unreachable } from "../api.js";
import { offline } from "../state.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { Problem } from "./problem.js";

const QUIET_MS = 150;
const DEBOUNCE_MS = 120;

/** Wait until the user pauses, before a request that is asked with each input. @param {AbortSignal} signal Of the request: no wait ends after it. */
export const settled = (signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, DEBOUNCE_MS);
    signal.addEventListener("abort", () => clearTimeout(timer));
  });

/**
 * Ask the service when the inputs change, cancelling the request before, and again when it is back.
 * @template T
 * @param {((signal: AbortSignal) => Promise<T>) | null} ask None asks nothing.
 * @param {unknown[]} inputs
 * @returns {{ answer: T | null, error: unknown, slow: boolean, again: () => void }} `slow` after 150 ms without an answer.
 */
export function useRequest(ask, inputs) {
  const [answer, setAnswer] = useState(/** @type {T | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [slow, setSlow] = useState(false);
  const [times, setTimes] = useState(0);
  useEffect(() => {
    if (!ask) {
      setAnswer(null);
      setError(null);
      setSlow(false);
      return;
    }
    const cancelled = new AbortController();
    const timer = setTimeout(() => setSlow(true), QUIET_MS);
    ask(cancelled.signal)
      .then(
        (found) => {
          if (cancelled.signal.aborted) return;
          setAnswer(found);
          setError(null);
        },
        (failed) => {
          // The bar says that the service cannot be reached.
          if (!cancelled.signal.aborted && !(failed instanceof Unreachable)) setError(failed);
        },
      )
      .finally(() => {
        clearTimeout(timer);
        if (!cancelled.signal.aborted) setSlow(false);
      });
    return () => {
      clearTimeout(timer);
      cancelled.abort();
    };
  }, [...inputs, times, offline.value]);
  return { answer, error, slow, again: () => setTimes((before) => before + 1) };
}

/** @param {{ error: unknown, slow: boolean }} props */
export function RequestState({ error, slow }) {
  return html`<${Problem} error=${error} />
    ${slow && html`<p class="faint" role="status">Loading …</p>`}`;
}
