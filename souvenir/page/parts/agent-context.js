import { call } from "../api.js";
import { address, go, key, route } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { Copy, curl } from "./copy.js";
import { html } from "./html.js";
import { RequestState, useRequest } from "./request.js";
import { percent } from "./score.js";

/** @import { Schemas } from "../api.js" */

const LEAST_TOKENS = 250;
const MOST_TOKENS = 16_000;
const DEFAULT_TOKENS = 2000;
const STEPS = 60;

/** The tokens of a place of the slider, which is logarithmic. @param {number} place */
const tokensAt = (place) => Math.round((LEAST_TOKENS * (MOST_TOKENS / LEAST_TOKENS) ** (place / STEPS)) / 10) * 10;

/** @param {number} tokens */
const placeOf = (tokens) => Math.round((STEPS * Math.log(tokens / LEAST_TOKENS)) / Math.log(MOST_TOKENS / LEAST_TOKENS));

/**
 * The text that the model would get for a question, and what is in it.
 * @param {{ agent: string }} props
 */
export function ContextPreview({ agent }) {
  const { query } = route.value;
  const question = query.get("ask") ?? "";
  const tokens = Number(query.get("tokens") ?? DEFAULT_TOKENS);
  const [draft, setDraft] = useState(question);
  const [place, setPlace] = useState(placeOf(tokens));
  const path = `context/${encodeURIComponent(agent)}`;
  const body = { query: question, max_tokens: tokens };
  const asked = useRequest(question ? (signal) => call("POST", path, { body, signal }) : null, [path, question, tokens]);
  /** @type {Schemas["ContextResponse"] | null} */
  const answer = asked.answer;
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    go("agents", { ask: draft.trim(), tokens: tokensAt(place) });
  };
  return html`<form class="fields" onSubmit=${submit}>
      <label>Question that the model will be asked <input size="40" dir="auto" autocomplete="off" value=${draft} required
        onInput=${(/** @type {Event} */ event) => setDraft(/** @type {HTMLInputElement} */ (event.target).value)} /></label>
      <label>Budget: ${tokensAt(place).toLocaleString("en")} tokens <input type="range" min="0" max=${STEPS} value=${place}
        onInput=${(/** @type {Event} */ event) => setPlace(Number(/** @type {HTMLInputElement} */ (event.target).value))} /></label>
      <button>Show the context</button>
    </form>
    <${RequestState} ...${asked} />
    ${
      answer &&
      question &&
      html`<section aria-label="Context">
        <p><meter min="0" max=${tokens} value=${answer.tokens} aria-label="Tokens used"></meter> ${answer.tokens.toLocaleString("en")} of ${tokens.toLocaleString("en")} tokens</p>
        <p><${Copy} label="Copy the text" text=${() => answer.text} />
          <${Copy} label="Copy as JSON" text=${() => JSON.stringify(answer, null, 2)} />
          <${Copy} label="Copy as curl" text=${() => curl(path, body, Boolean(key.value))} /></p>
        <pre class="context-text" tabindex="0" dir="auto"><span class="stable" title="Stable: the same for every question, so that vendors can cache it">${answer.stable_prefix}</span><span class="volatile" title="Chosen for this question">${answer.volatile_tail}</span></pre>
        ${!answer.text && html`<p>The context is empty: nothing that is stored is about this question, and there is no block.</p>`}
        <p class="faint">The part with the coloured edge is the same for every question, so that vendors can cache it.</p>
        <h2>In it</h2>
        <${Included} agent=${agent} answer=${answer} />
        <${LeftOut} dropped=${answer.dropped} />
      </section>`
    }`;
}

/** @param {{ agent: string, answer: Schemas["ContextResponse"] }} props */
function Included({ agent, answer }) {
  const { memory_blocks, relevant_memories, relevant_messages } = answer;
  if (!memory_blocks.length && !relevant_memories.length && !relevant_messages.length) return html`<p>Nothing.</p>`;
  return html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Kind</th><th>Text</th><th>Answers</th></tr></thead><tbody>
    ${memory_blocks.map(
      ({ id, label, value }) => html`<tr key=${id}><td><a href=${address("agents", { show: "blocks" })}>block</a></td><td><bdi>${label}</bdi>: <bdi>${value.slice(0, 200)}</bdi></td><td class="faint">always in</td></tr>`,
    )}
    ${relevant_memories.map(
      ({ id, text, score }) => html`<tr key=${id}><td><a href=${address("memories", { in: agent, memory: id })}>memory ${id}</a></td><td dir="auto">${text.slice(0, 200)}</td><td>${percent(score ?? 0)}</td></tr>`,
    )}
    ${relevant_messages.map(
      ({ id, role, content, score, session_id }) => html`<tr key=${id}><td><a href=${address("agents", { show: "conversations", session: session_id, message: id })}>${role}</a></td><td dir="auto">${content.slice(0, 200)}</td><td>${percent(score)}</td></tr>`,
    )}
  </tbody></table></div>`;
}

/** @param {{ dropped: Schemas["DroppedCounts"] }} props */
function LeftOut({ dropped }) {
  if (!dropped.messages && !dropped.memories) return html`<p class="faint">Nothing that was found had to be left out.</p>`;
  return html`<p class="faint">Left out, since the budget was used up: ${dropped.messages.toLocaleString("en")} messages and ${dropped.memories.toLocaleString("en")} memories.</p>`;
}
