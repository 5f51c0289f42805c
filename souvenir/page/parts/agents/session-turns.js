// The turns of a session in pages: around one of them, earlier and later.
import { call } from "../../api.js";
import { useState } from "../../vendor/preact-hooks.js";
import { arrived } from "../live.js";
import { useRequest } from "../request.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["MessageRecord"]} Message */
/** @typedef {{ offset: number, total: number, messages: Message[], seen: number }} Loaded */

const AT_ONCE = 100;

/** @type {Loaded} */
const NOTHING = { offset: 0, total: 0, messages: [], seen: 0 };

/**
 * @param {string} path Of the session.
 * @param {string} session
 * @param {string | null} wanted The id of a message that is among the turns.
 */
export function useTurns(path, session, wanted) {
  const [loaded, setLoaded] = useState(NOTHING);
  const [from, setFrom] = useState("offset=0");
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const isMissing = wanted !== null && !loaded.messages.some(({ id }) => id === wanted);
  const start = isMissing ? `around=${encodeURIComponent(wanted)}` : from;
  const asked = useRequest(
    async (signal) => {
      // The wanted turn is there already.
      if (start === from && wanted !== null && loaded.messages.length) return;
      const found = await pageOf(path, `${start}&limit=${AT_ONCE}`, signal);
      setFrom(start);
      setLoaded(found);
    },
    [path, start],
  );
  /**
   * @param {number} offset
   * @param {number} limit
   */
  const extend = async (offset, limit) => {
    try {
      const found = await pageOf(path, `offset=${offset}&limit=${limit}`);
      setLoaded((before) => ({
        ...found,
        offset: Math.min(before.offset, found.offset),
        messages: found.offset < before.offset ? [...found.messages, ...before.messages] : [...before.messages, ...found.messages],
      }));
      setError(null);
    } catch (failed) {
      setError(failed);
    }
  };
  /** @param {number} offset */
  const jump = async (offset) => {
    try {
      setLoaded(await pageOf(path, `offset=${offset}&limit=${AT_ONCE}`));
      setError(null);
    } catch (failed) {
      setError(failed);
    }
  };
  const { offset, total, messages, seen } = loaded;
  return {
    offset,
    total,
    messages,
    error: error ?? asked.error,
    slow: asked.slow,
    fresh: arrived.value.filter(({ id, type, data }) => id > seen && type === "message.added" && data.session_id === session).length,
    earlier: () => extend(Math.max(0, offset - AT_ONCE), Math.min(AT_ONCE, offset)),
    later: () => extend(offset + messages.length, AT_ONCE),
    toStart: () => jump(0),
    toEnd: () => jump(Math.max(0, total - AT_ONCE)),
    /** @param {Message} changed */
    replace: (changed) => setLoaded((before) => ({ ...before, messages: before.messages.map((each) => (each.id === changed.id ? changed : each)) })),
    /** @param {string} id */
    remove: (id) => setLoaded((before) => ({ ...before, total: before.total - 1, messages: before.messages.filter((each) => each.id !== id) })),
  };
}

/**
 * @param {string} path
 * @param {string} parameters
 * @param {AbortSignal} [signal]
 * @returns {Promise<Loaded>}
 */
async function pageOf(path, parameters, signal) {
  const seen = arrived.peek()[0]?.id ?? 0;
  const place = { offset: 0, total: 0 };
  const onHeaders = (/** @type {Headers} */ headers) => {
    place.offset = Number(headers.get("X-Offset"));
    place.total = Number(headers.get("X-Total-Count"));
  };
  const messages = await call("GET", `${path}/messages?${parameters}`, { signal, onHeaders });
  return { ...place, messages, seen };
}
