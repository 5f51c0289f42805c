import { offline } from "../state.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";

const QUIET_MS = 150;

/**
 * Ask the service when the inputs change, cancelling the request before, and again when it is back.
 * @template T
 * @param {((signal: AbortSignal) => Promise<T>) | null} ask None asks nothing.
 * @param {unknown[]} inputs
 * @returns {{ answer: T | null, error: string, slow: boolean, again: () => void }} `slow` after 150 ms without an answer.
 */
export function useRequest(ask, inputs) {
  const [answer, setAnswer] = useState(/** @type {T | null} */ (null));
  const [error, setError] = useState("");
  const [slow, setSlow] = useState(false);
  const [times, setTimes] = useState(0);
  useEffect(() => {
    if (!ask) {
      setAnswer(null);
      return;
    }
    const cancelled = new AbortController();
    const timer = setTimeout(() => setSlow(true), QUIET_MS);
    ask(cancelled.signal)
      .then(
        (found) => {
          if (cancelled.signal.aborted) return;
          setAnswer(found);
          setError("");
        },
        (failed) => {
          // The bar says that the service cannot be reached.
          if (!cancelled.signal.aborted && !(failed instanceof TypeError)) setError(failed.message);
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

/** @param {{ error: string, slow: boolean }} props */
export function RequestState({ error, slow }) {
  return html`${error && html`<p class="error" role="alert">${error}</p>`}
    ${slow && html`<p class="faint" role="status">Loading …</p>`}`;
}
