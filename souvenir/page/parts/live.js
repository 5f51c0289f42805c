// What happens in the namespace while the page is open, from the event feed of the service.
import { headersOf, here } from "../api.js";
import { keyRefused, namespace, offline, role } from "../state.js";
import { useEffect } from "../vendor/preact-hooks.js";
import { batch, signal } from "../vendor/preact-signals.js";
import { changes, isOwn } from "./changes.js";

/** @import { Schemas } from "../api.js" */
/** @typedef {Schemas["EventRecord"]} Happening */

const AGAIN_MS = 2000;
const MOST_MS = 60_000;
const KEPT = 200;

/** Whether the feed is connected. */
export const connected = signal(false);

/** The id of the last event before the feed began; null while it has not begun. */
export const begun = signal(/** @type {number | null} */ (null));

/** The events since the feed began, newest first. */
export const arrived = signal(/** @type {Happening[]} */ ([]));

/**
 * Follow the events of the shown namespace. Only a visible page is connected, since browsers open few connections at
 * once to one address; a page that is shown again gets what it missed.
 */
export function useLive() {
  const name = role.value && namespace();
  useEffect(() => {
    if (!name) return;
    begun.value = null;
    arrived.value = [];
    /** @type {AbortController | null} */
    let ended = null;
    const change = () => {
      if (document.hidden) {
        ended?.abort();
        ended = null;
      } else if (!ended) {
        ended = new AbortController();
        void follow(ended.signal);
      }
    };
    change();
    document.addEventListener("visibilitychange", change);
    return () => {
      document.removeEventListener("visibilitychange", change);
      ended?.abort();
      connected.value = false;
    };
  }, [name]);
}

/**
 * Read events until the signal ends it, and connect again after each break, with what happened in between.
 * `EventSource` cannot send a key, so the stream is read by `fetch`.
 * @param {AbortSignal} signal
 */
async function follow(signal) {
  let wait_ms = AGAIN_MS;
  while (!signal.aborted) {
    try {
      const at = here();
      const last = arrived.value[0]?.id ?? begun.value;
      const response = await fetch(`events/stream${last === null ? "" : `?last_event_id=${last}`}`, { headers: headersOf(at), signal });
      if (response.status === 401) keyRefused(at.key);
      if (!response.ok || !response.body) throw new Error(`The event stream answered ${response.status}`);
      connected.value = true;
      wait_ms = AGAIN_MS;
      /** @type {Record<string, string>[]} */
      const waiting = [];
      // Events that arrive together, as those of a change of many memories, are shown together.
      const show = () => batch(() => signal.aborted || waiting.splice(0).forEach(take));
      for await (const block of blocksOf(response.body)) if (waiting.push(block) === 1) setTimeout(show);
    } catch {
      // A break is no error for the reader: `connected` says so, and the next connection continues after the last event.
    }
    if (signal.aborted) return;
    connected.value = false;
    await new Promise((done) => setTimeout(done, wait_ms));
    // An unreachable service is noticed by other requests too, and may be back at once; one that refuses is asked less and less.
    if (!offline.value) wait_ms = Math.min(2 * wait_ms, MOST_MS);
  }
}

/** @param {Record<string, string>} block The fields of a server-sent event. */
function take({ id, event, data }) {
  if (event === "events.lost") {
    begun.value = null;
    arrived.value = [];
    changes.value += 1;
  }
  if (begun.value === null && id) begun.value = Number(id);
  if (!data || event === "events.lost") return;
  const record = JSON.parse(data);
  const newest = { id: Number(id ?? arrived.value[0]?.id ?? begun.value), type: event, timestamp: record.timestamp, data: record };
  arrived.value = [newest, ...arrived.value].slice(0, KEPT);
}

/**
 * The fields of each server-sent event, which empty lines separate.
 * @param {ReadableStream<Uint8Array>} body
 */
async function* blocksOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) yield fieldsOf(block);
  }
}

/**
 * @param {string} block
 * @returns {Record<string, string>}
 */
function fieldsOf(block) {
  const lines = block.split("\n").map((line) => /** @type {[string, string]} */ ([line.split(":", 1)[0], line.slice(line.indexOf(":") + 1).trim()]));
  return Object.fromEntries(lines.filter(([name]) => name));
}

/** The last event that is known now. */
export const latest = () => arrived.peek()[0]?.id ?? begun.peek() ?? 0;

/**
 * Memories that others added and changed after an event, by their ids.
 * @param {number} since
 * @param {string} [path] Only of sources in this path, as far as an event names one.
 * @returns {{ added: Set<number>, changed: Set<number> }}
 */
export function theirs(since, path = "") {
  const added = new Set();
  const changed = new Set();
  for (const event of arrived.value) {
    if (event.id <= since) break;
    const { type, data } = event;
    if (!type.startsWith("memory.") || isOwn(event) || !liesIn(String(data.source ?? ""), path)) continue;
    if (type === "memory.added") added.add(data.id);
    else for (const id of [data.id, data.from_id, data.to_id]) if (id) changed.add(id);
  }
  for (const id of added) changed.delete(id);
  return { added, changed };
}

/**
 * @param {string} source Empty if the event names none.
 * @param {string} path
 */
const liesIn = (source, path) => !path || !source || source === path || source.startsWith(path.endsWith("/") ? path : `${path}/`);
