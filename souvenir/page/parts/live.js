// The event feed of the service, as it happens.
import { key, route } from "../state.js";

/** @import { Schemas } from "../api.js" */

const AGAIN_MS = 2000;

/**
 * Read events until the signal ends it, and connect again after each break, with what happened in between.
 * `EventSource` cannot send a key, so the stream is read by `fetch`.
 * @param {number} after The id of the last known event.
 * @param {{ onEvent: (event: Schemas["EventRecord"]) => void, onState: (connected: boolean) => void, signal: AbortSignal }} options
 */
export async function follow(after, { onEvent, onState, signal }) {
  let last = after;
  while (!signal.aborted) {
    try {
      /** @type {Record<string, string>} */
      const headers = { "X-Memories-Client": "page" };
      if (key.value) headers["X-API-Key"] = key.value;
      const namespace = route.value.query.get("in");
      if (namespace) headers["X-Namespace"] = namespace;
      const response = await fetch(`events/stream?last_event_id=${last}`, { headers, signal });
      if (!response.ok || !response.body) throw new Error(`The event stream answered ${response.status}`);
      onState(true);
      for await (const text of blocksOf(response.body)) {
        const event = parsed(text);
        if (event.id) last = event.id;
        if (event.data) onEvent({ id: last, type: event.type, timestamp: event.data.timestamp, data: event.data });
      }
    } catch {
      // A break is no error for the reader: the state says so, and the next connection continues after the last event.
    }
    if (signal.aborted) return;
    onState(false);
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

/**
 * The blocks of a server-sent event stream, which empty lines separate.
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
    yield* blocks;
  }
}

/**
 * @param {string} block
 * @returns {{ id: number, type: string, data: any }}
 */
function parsed(block) {
  /** @type {Record<string, string>} */
  const fields = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trim();
  }
  return { id: Number(fields.id ?? 0), type: fields.event ?? "", data: fields.data ? JSON.parse(fields.data) : null };
}
