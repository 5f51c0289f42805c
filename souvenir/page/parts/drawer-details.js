import { call } from "../api.js";
import { address, key } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { changes, factsOf, replaceText } from "./changes.js";
import { Copy, curl } from "./copy.js";
import { html } from "./html.js";
import { notify } from "./notice.js";
import { RequestState, useRequest } from "./request.js";
import { StoredText, Time } from "./text.js";
import { WordDiff } from "./word-diff.js";

/** @import { Schemas } from "../api.js" */
/** @import { Memory } from "./changes.js" */

/** @param {{ id: number }} props */
const MemoryLink = ({ id }) => html`<a href=${address("memories", { memory: id })}>Memory ${id}</a>`;

/** @param {{ memory: Memory }} props */
export function Facts({ memory }) {
  const facts = factsOf(memory);
  if (!facts.length) return null;
  return html`<h2>Facts</h2><ul class="facts">${facts.map(
    ({ id, text, made_by }) => html`<li key=${id} dir="auto">${text} <span class="faint">${made_by}</span></li>`,
  )}</ul>`;
}

/** Who wrote a memory, with which program, and from what. @param {{ memory: Memory }} props */
export function Provenance({ memory }) {
  const names = [memory.author, ...(Array.isArray(memory.contributors) ? memory.contributors : [])].filter(Boolean);
  return html`<h2>Origin</h2>
    <div>${memory.origin_class}${memory.origin_client ? html` · <bdi>${memory.origin_client}</bdi>` : null}
      ${names.map((name) => html` · <bdi>${name}</bdi>`)}</div>`;
}

/** Memories that it replaced or that replaced it, and its links. @param {{ memory: Memory }} props */
export function Links({ memory }) {
  const asked = useRequest(
    (signal) => call("GET", `memory/${memory.id}/links?include_incoming=true`, { signal }),
    [memory.id, changes.value],
  );
  /** @type {Schemas["LinksResponse"] | null} */
  const answer = asked.answer;
  // What it replaced, and what replaced it, is shown above the links.
  const links = answer?.memory_id === memory.id ? answer.links.filter(({ type }) => type !== "supersedes") : [];
  return html`<${RequestState} ...${asked} />
    ${memory.superseded_by ? html`<p class="replaced">Replaced by <${MemoryLink} id=${memory.superseded_by} />.</p>` : null}
    ${
      memory.supersedes
        ? html`<h2>Replaces</h2><div><${MemoryLink} id=${memory.supersedes} /></div>
        ${memory.previous_text && html`<${WordDiff} before=${memory.previous_text} after=${memory.text} />`}`
        : null
    }
    ${memory.conflicts_with ? html`<p>Contradicts <${MemoryLink} id=${memory.conflicts_with} />.</p>` : null}
    ${
      links.length
        ? html`<h2>Links</h2><ul>${links.map(({ from_id, to_id, type, direction }) => {
            const [id, arrow] = direction === "incoming" ? [from_id, "←"] : [to_id, "→"];
            return html`<li key=${`${type}${from_id}-${to_id}`}>${type.replaceAll("_", " ")} ${arrow} <${MemoryLink} id=${id} /></li>`;
          })}</ul>`
        : null
    }`;
}

/** The changes of a memory, newest first, loaded when opened. @param {{ memory: Memory, writes: boolean }} props */
export function History({ memory, writes }) {
  const [open, setOpen] = useState(false);
  const asked = useRequest(open ? (signal) => call("GET", `memory/${memory.id}/history`, { signal }) : null, [
    memory.id,
    open,
    changes.value,
  ]);
  /** @type {Schemas["HistoryResponse"] | null} */
  const answer = asked.answer;
  /** @param {string} text */
  const restore = async (text) => {
    const before = memory.text;
    const facts = factsOf(memory).map((fact) => fact.text);
    const refused = "The text was changed meanwhile. Open the history again and choose once more.";
    if ((await replaceText(memory.id, before, text)) !== null) return notify(refused);
    notify("Earlier text restored.", async () => {
      if ((await replaceText(memory.id, text, before, facts)) !== null) throw new Error(refused);
    });
  };
  /** @param {string} text */
  const tryToRestore = (text) => restore(text).catch((failed) => notify(`Not restored: ${failed.message}`));
  return html`<details onToggle=${(/** @type {Event} */ event) => setOpen(/** @type {HTMLDetailsElement} */ (event.target).open)}>
    <summary>History</summary>
    <${RequestState} ...${asked} />
    <ol class="history">${answer?.changes.toReversed().map(({ action, actor, at, before, after }) => {
      const [old, now] = [before?.text, after?.text];
      const changed = typeof old === "string" && typeof now === "string" && old !== now;
      return html`<li key=${`${at}${action}`}><div>${action} <span class="faint">· <bdi>${actor}</bdi> · <${Time} at=${at} /></span></div>
        ${changed && html`<${WordDiff} before=${old} after=${now} />`}
        ${changed && writes && old !== memory.text && html`<button type="button" onClick=${() => tryToRestore(old)}>Restore the earlier text</button>`}
        ${action === "add" && typeof now === "string" && html`<${StoredText} text=${now} />`}</li>`;
    })}</ol>
  </details>`;
}

/** The record as the API answers it. @param {{ memory: Memory }} props */
export function Raw({ memory }) {
  const [open, setOpen] = useState(false);
  const text = () => JSON.stringify(memory, null, 2);
  return html`<details onToggle=${(/** @type {Event} */ event) => setOpen(/** @type {HTMLDetailsElement} */ (event.target).open)}>
      <summary>Raw JSON</summary>
      ${open && html`<pre tabindex="0" dir="auto">${text()}</pre>`}
    </details>
    <p><${Copy} label="Copy as curl" text=${() => curl(`memory/${memory.id}`, undefined, Boolean(key.value))} />
      <${Copy} label="Copy as JSON" text=${text} /></p>`;
}
