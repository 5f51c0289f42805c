import { call } from "../api.js";
import { go, route } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { arrived, begun } from "./live.js";
import { RequestState, useRequest } from "./request.js";
import { MemoryLink, Time } from "./text.js";

/** @import { Schemas } from "../api.js" */
/** @import { Happening } from "./live.js" */

const RECENT = 50;
const KINDS = ["memory", "message", "block", "extraction", "job", "conflict"];

/**
 * The changes of the namespace as they happen. New ones wait behind a button, so that nothing moves under the cursor.
 * @param {{ view: string }} props The view that it is part of.
 */
export function Feed({ view }) {
  const kind = route.value.query.get("kind") ?? "";
  const [newest, setNewest] = useState(0);
  const recent = useRequest(
    begun.value === null
      ? null
      : async (signal) => {
          /** @type {Schemas["EventsResponse"]} */
          const answer = await call("GET", `events/recent?limit=${RECENT}`, { signal });
          setNewest(answer.events.at(-1)?.id ?? 0);
          return answer;
        },
    [begun.value],
  );
  /** @type {Schemas["EventsResponse"] | null} */
  const answer = recent.answer;
  const before = answer ? [...answer.events].reverse() : [];
  const since = arrived.value.filter(({ id }) => id > (before[0]?.id ?? 0));
  const waiting = answer ? since.filter(({ id }) => id > newest).length : 0;
  const shown = [...since.slice(waiting), ...before].filter(({ type }) => !kind || type.startsWith(`${kind}.`));
  return html`<section aria-label="Changes">
    <h2>Changes</h2>
    <${RequestState} ...${recent} />
    <p><label>Show <select value=${kind} onChange=${(/** @type {Event} */ event) => go(view, { show: route.value.query.get("show"), kind: /** @type {HTMLSelectElement} */ (event.target).value })}>
      <option value="">all changes</option>${KINDS.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label></p>
    ${waiting > 0 && html`<p><button type="button" class="new" onClick=${() => setNewest(arrived.value[0].id)}>${waiting} new</button></p>`}
    ${answer && !shown.length && !waiting && html`<p>Nothing has changed yet. What programs add, edit and delete appears here at once.</p>`}
    <ol class="feed" aria-label="Latest changes">${shown.map((event) => html`<li key=${event.id}><${Sentence} event=${event} /> <span class="faint">· <${Time} at=${event.timestamp} /></span></li>`)}</ol>
  </section>`;
}

/** @param {{ event: Happening }} props */
function Sentence({ event }) {
  const { type, data } = event;
  const [thing, act] = type.split(".");
  const did = act === "found" ? "was found" : act === "queued" ? "waits" : `was ${act}`;
  if (thing === "memory" && data.from_id)
    return html`<span><${MemoryLink} id=${data.from_id} /> was ${act} ${act === "linked" ? "with" : "from"} <${MemoryLink} id=${data.to_id} /></span>`;
  if (thing === "memory")
    return html`<span>${act === "deleted" ? `Memory ${data.id}` : html`<${MemoryLink} id=${data.id} />`} ${did}${data.source ? html` in <bdi>${data.source}</bdi>` : ""}</span>`;
  if (thing === "conflict") return html`<span>A conflict between <${MemoryLink} id=${data.id} /> and <${MemoryLink} id=${data.conflicts_with} /> ${did}</span>`;
  if (thing === "message")
    return html`<span>A message ${did}${data.role ? ` (${data.role})` : ""}${data.session_id ? html` in the session <bdi>${data.session_id}</bdi>` : ""}</span>`;
  if (thing === "block") return html`<span>The block <bdi>${data.label ?? data.id}</bdi> ${did}${data.version ? `, version ${data.version}` : ""}</span>`;
  if (thing === "events") return html`<span>${data.message}</span>`;
  const counts = thing === "extraction" && act === "completed" ? `: ${data.stored_count} stored, ${data.updated_count} replaced, ${data.deleted_count} archived` : "";
  return html`<span>${thing === "extraction" ? "An extraction" : `The job ${data.kind}`} ${did}${counts}</span>`;
}
