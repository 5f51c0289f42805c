import { memories, Unreachable } from "../../api.js";
import { offline } from "../../state.js";
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { asked, changed, changes } from "../changes.js";

/** @import { Memory } from "../changes.js" */
/** @typedef {ReturnType<typeof useMemoryPages>} Pages */

const CHUNK = 100;
const KEPT_CHUNKS = 50;
const MOST_AT_ONCE = 1000;
const SETTLE_MS = 60;

/**
 * The memories of a list by their places, of which only the chunks with the places that are seen are asked for.
 *
 * Of the newest, no memories are listed that were added after the first page, so that nothing moves under the cursor.
 * @param {{ filters: string, newest: boolean, first: number, shown: number }} props `shown` places are seen, from `first` on.
 */
export function useMemoryPages({ filters, newest, first, shown }) {
  const chunks = useRef(/** @type {Map<number, Memory[]>} */ (new Map()));
  const fresh = useRef(/** @type {Set<number>} */ (new Set()));
  const ceiling = useRef(/** @type {number | null} */ (null));
  const [total, setTotal] = useState(0);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [renewals, setRenewals] = useState(0);
  const [, setLoads] = useState(0);
  useEffect(() => fresh.current.clear(), [changes.value, renewals]);
  /**
   * @param {number} offset
   * @param {number} limit
   * @param {AbortSignal} [signal]
   */
  const ask = async (offset, limit, signal) => {
    const upTo = ceiling.current === null ? "" : `&max_id=${ceiling.current}`;
    const page = await asked(() => memories(offset, limit, `${filters}${newest ? `&order=newest${upTo}` : ""}`, { signal }));
    if (newest && offset === 0) ceiling.current ??= page.memories[0]?.id ?? null;
    setTotal(page.total);
    return page.memories;
  };
  const end = Math.max(first + 1, Math.min(first + shown, total));
  useEffect(() => {
    const cancelled = new AbortController();
    const load = async () => {
      for (const chunk of new Set([Math.floor(first / CHUNK), Math.floor((end - 1) / CHUNK)])) {
        if (fresh.current.has(chunk)) continue;
        try {
          chunks.current.set(chunk, await ask(chunk * CHUNK, CHUNK, cancelled.signal));
          fresh.current.add(chunk);
          forgetFarthest(chunks.current, fresh.current, chunk);
          setLoads((before) => before + 1);
          setError(null);
        } catch (failed) {
          if (!cancelled.signal.aborted && !(failed instanceof Unreachable)) setError(failed);
        }
      }
    };
    const timer = setTimeout(load, SETTLE_MS);
    return () => {
      clearTimeout(timer);
      cancelled.abort();
    };
  }, [first, end, offline.value, changes.value, renewals]);
  return {
    total,
    error,
    /** The greatest id that is listed; null for all. */
    ceiling: ceiling.current,
    /** @param {number} place */
    at: (place) => {
      const memory = place < total ? chunks.current.get(Math.floor(place / CHUNK))?.[place % CHUNK] : undefined;
      return memory && changed(memory);
    },
    /** @param {number} id */
    placeOf: (id) => {
      for (const [chunk, loaded] of chunks.current) {
        const step = loaded.findIndex((memory) => memory.id === id);
        if (step >= 0 && chunk * CHUNK + step < total) return chunk * CHUNK + step;
      }
      return -1;
    },
    /**
     * The memories of these places, asked for where they are not known as they are now.
     * @param {number} from
     * @param {number} to
     * @returns {Promise<Memory[]>}
     */
    need: async (from, to) => {
      /** @type {Memory[]} */
      const found = [];
      while (from + found.length <= to) {
        const place = from + found.length;
        const chunk = Math.floor(place / CHUNK);
        const known = fresh.current.has(chunk) ? (chunks.current.get(chunk) ?? []).slice(place % CHUNK) : [];
        const more = known.length ? known : await ask(place, Math.min(MOST_AT_ONCE, to - place + 1));
        if (!more.length) break;
        found.push(...more);
      }
      return found.slice(0, to - from + 1);
    },
    /** Ask again, with what others added. */
    renew: () => {
      ceiling.current = null;
      setRenewals(renewals + 1);
    },
  };
}

/**
 * @param {Map<number, Memory[]>} chunks
 * @param {Set<number>} fresh
 * @param {number} near
 */
function forgetFarthest(chunks, fresh, near) {
  if (chunks.size <= KEPT_CHUNKS) return;
  const farthest = [...chunks.keys()].reduce((one, other) => (Math.abs(other - near) > Math.abs(one - near) ? other : one));
  chunks.delete(farthest);
  fresh.delete(farthest);
}
