import { call } from "../../api.js";
import { key } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { changes, changeText } from "../changes.js";
import { Copy, curl } from "../copy.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { StoredText, Time } from "../text.js";
import { WordDiff } from "../word-diff.js";

/** @import { Schemas } from "../../api.js" */
/** @import { Memory } from "../changes.js" */

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
  const restore = (text) => changeText(memory, memory.text, text, "Earlier text restored.").catch(() => {});
  return html`<details onToggle=${(/** @type {Event} */ event) => setOpen(/** @type {HTMLDetailsElement} */ (event.target).open)}>
    <summary>History</summary>
    <${RequestState} ...${asked} />
    <ol class="history">${answer?.changes.toReversed().map(({ action, actor, at, before, after }) => {
      const [old, now] = [before?.text, after?.text];
      const changed = typeof old === "string" && typeof now === "string" && old !== now;
      return html`<li key=${`${at}${action}`}><div>${action} <span class="faint">· <bdi>${actor}</bdi> · <${Time} at=${at} /></span></div>
        ${changed && html`<${WordDiff} before=${old} after=${now} />`}
        ${changed && writes && old !== memory.text && html`<button type="button" onClick=${() => restore(old)}>Restore the earlier text</button>`}
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
