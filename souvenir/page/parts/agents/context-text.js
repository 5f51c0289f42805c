import { address } from "../../state.js";
import { html } from "../html.js";
import { percent } from "../score.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["ContextLines"]} Lines */
/** @typedef {{ text: string, stable: boolean, lines: Lines | null }} Segment */

/**
 * The text of a context as the model gets it, with the score of each message and memory in the margin.
 * @param {{ agent: string, answer: Schemas["ContextResponse"] }} props
 */
export function ContextText({ agent, answer }) {
  if (!answer.text) return html`<p>The context is empty: nothing that is stored is about this question, and there is no block.</p>`;
  const segments = segmentsOf(answer);
  return html`<div class="context-text" tabindex="0" role="group" aria-label="Text of the context">${segments.map(
      ({ text, stable, lines }, place) => html`<div key=${place} class=${`segment ${stable ? "stable" : ""}`}>
        <div class="margin">${lines ? html`<${Score} agent=${agent} lines=${lines} />` : stable && html`<a href=${address("agents", { show: "blocks" })}>blocks</a>`}</div>
        <div class="words" dir="auto">${text}</div></div>`,
    )}</div>
    ${
      answer.stable_prefix &&
      html`<p class="faint">The part with the tinted edge is the same for every question until a block changes, so that vendors can cache it (<code>stable_etag</code> ${answer.stable_etag.slice(0, 12)}…).</p>`
    }`;
}

/** @param {{ agent: string, lines: Lines }} props */
function Score({ agent, lines }) {
  const { kind, memory_id, message_id, session_id, score } = lines;
  const href =
    kind === "memory" ? address("memories", { in: agent, memory: memory_id }) : address("agents", { in: agent, show: "conversations", session: session_id, message: message_id });
  const known = score !== null && score !== undefined;
  const said = known ? percent(score) : "asked";
  const why = known ? `${kind}, answers with ${said}` : "the question before the answer that follows";
  return html`<a href=${href} title=${why} aria-label=${`${said}: ${why}`}>${said}</a>`;
}

/**
 * The text in pieces, which are the whole text in order: one for each message and memory, and what stands between them.
 * @param {Schemas["ContextResponse"]} answer
 * @returns {Segment[]}
 */
export function segmentsOf({ text, stable_prefix, explain }) {
  const rows = text.split("\n").map((line) => `${line}\n`);
  // After the last line break stands nothing.
  if (rows.at(-1) === "\n") rows.pop();
  const stable = stable_prefix.split("\n").length - 1;
  /** @type {Segment[]} */
  const segments = [];
  /** @param {number} from @param {number} to @param {Lines | null} lines */
  const add = (from, to, lines) => {
    if (to > from) segments.push({ text: rows.slice(from, to).join(""), stable: to <= stable, lines });
  };
  add(0, stable, null);
  let done = stable;
  for (const lines of explain.lines ?? []) {
    add(done, lines.first_line - 1, null);
    add(lines.first_line - 1, lines.last_line, lines);
    done = lines.last_line;
  }
  add(done, rows.length, null);
  return segments;
}
