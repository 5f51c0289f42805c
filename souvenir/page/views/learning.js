import { call } from "../api.js";
import { html } from "../parts/html.js";
import { Extraction } from "../parts/learning-extraction.js";
import { Conflicts } from "../parts/learning-conflicts.js";
import { follow } from "../parts/live.js";
import { RequestState, useRequest } from "../parts/request.js";
import { Time } from "../parts/text.js";
import { address, go, role, route } from "../state.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";

/** @import { Schemas } from "../api.js" */
/** @typedef {Schemas["EventRecord"]} Event_ */

const RECENT = 50;
const KEPT = 200;
const KINDS = ["memory", "message", "block", "extraction", "job", "conflict"];

/** What the service learns: conflicts that wait, a conversation to learn from, and changes as they happen. */
export function Learning() {
  return html`<main id="main" tabindex="-1" class="scroll">
    <h1>Learning</h1>
    <${Conflicts} />
    ${role.value !== "read-only" && html`<${Extraction} />`}
    <${Feed} />
  </main>`;
}

function Feed() {
  const kind = route.value.query.get("kind") ?? "";
  const [events, setEvents] = useState(/** @type {Event_[]} */ ([]));
  const [waiting, setWaiting] = useState(/** @type {Event_[]} */ ([]));
  const [connected, setConnected] = useState(false);
  const recent = useRequest((signal) => call("GET", `events/recent?limit=${RECENT}`, { signal }), []);
  /** @type {Schemas["EventsResponse"] | null} */
  const answer = recent.answer;
  useEffect(() => {
    if (!answer) return;
    const ended = new AbortController();
    setEvents([...answer.events].reverse());
    setWaiting([]);
    void follow(answer.events.at(-1)?.id ?? 0, {
      onEvent: (event) => setWaiting((before) => [event, ...before].slice(0, KEPT)),
      onState: setConnected,
      signal: ended.signal,
    });
    return () => ended.abort();
  }, [answer]);
  const shown = events.filter(({ type }) => !kind || type.startsWith(`${kind}.`));
  const show = () => {
    setEvents((before) => [...waiting, ...before].slice(0, KEPT));
    setWaiting([]);
  };
  return html`<section aria-label="Changes">
    <h2>Changes <span class="faint" role="status">${connected ? "● live" : "○ connecting …"}</span></h2>
    <${RequestState} ...${recent} />
    <p><label>Show <select value=${kind} onChange=${(/** @type {Event} */ event) => go("learning", { kind: /** @type {HTMLSelectElement} */ (event.target).value })}>
      <option value="">all changes</option>${KINDS.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label></p>
    ${waiting.length > 0 && html`<p><button type="button" class="new" onClick=${show}>${waiting.length} new</button></p>`}
    ${answer && !shown.length && !waiting.length && html`<p>Nothing has changed yet. What programs add, edit and delete appears here at once.</p>`}
    <ol class="feed" aria-label="Latest changes">${shown.map((event) => html`<li key=${event.id}><${Sentence} event=${event} /> <span class="faint">· <${Time} at=${event.timestamp} /></span></li>`)}</ol>
  </section>`;
}

/** @param {{ event: Event_ }} props */
function Sentence({ event }) {
  const { type, data } = event;
  const [thing, act] = type.split(".");
  const did = act === "found" ? "was found" : act === "queued" ? "waits" : `was ${act}`;
  if (thing === "memory" && data.from_id)
    return html`<span><${Memory} id=${data.from_id} /> was ${act} ${act === "linked" ? "with" : "from"} <${Memory} id=${data.to_id} /></span>`;
  if (thing === "memory")
    return html`<span>${act === "deleted" ? `Memory ${data.id}` : html`<${Memory} id=${data.id} />`} ${did}${data.source ? html` in <bdi>${data.source}</bdi>` : ""}</span>`;
  if (thing === "conflict") return html`<span>A conflict between <${Memory} id=${data.id} /> and <${Memory} id=${data.conflicts_with} /> ${did}</span>`;
  if (thing === "message")
    return html`<span>A message ${did}${data.role ? ` (${data.role})` : ""}${data.session_id ? html` in the session <bdi>${data.session_id}</bdi>` : ""}</span>`;
  if (thing === "block") return html`<span>The block <bdi>${data.label ?? data.id}</bdi> ${did}${data.version ? `, version ${data.version}` : ""}</span>`;
  if (thing === "events") return html`<span>${data.message}</span>`;
  const counts = thing === "extraction" && act === "completed" ? `: ${data.stored_count} stored, ${data.updated_count} replaced, ${data.deleted_count} archived` : "";
  return html`<span>${thing === "extraction" ? "An extraction" : `The job ${data.kind}`} ${did}${counts}</span>`;
}

/** @param {{ id: number }} props */
const Memory = ({ id }) => html`<a href=${address("memories", { memory: id })}>memory ${id}</a>`;
