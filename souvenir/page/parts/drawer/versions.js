import { call } from "../../api.js";
import { useState } from "../../vendor/preact-hooks.js";
import { changes } from "../changes.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { MemoryLink, StoredText, Time } from "../text.js";
import { WordDiff } from "../word-diff.js";

/** @import { Memory } from "../changes.js" */

// A longer chain is shown in part, with a way to go on.
const SHOWN = 20;

/** The memories that a memory replaced: one, or several if it was made by a merge. @param {Memory} memory */
const replacedBy = (memory) => (memory.links ?? []).filter(({ type }) => type === "supersedes").map(({ to_id }) => to_id);

/**
 * The chain of memories that replaced each other, with a memory in it.
 * @param {Memory} memory
 * @param {number} most In each direction.
 * @param {AbortSignal} signal
 * @returns {Promise<{ versions: Memory[], complete: boolean }>} The newest first.
 */
async function chainOf(memory, most, signal) {
  /** @type {Map<number, Memory>} */
  const known = new Map([[memory.id, memory]]);
  /** @param {number[]} ids */
  const load = async (ids) => {
    /** @type {{ memories: Memory[] }} */
    const { memories } = await call("POST", "memory/get-batch", { body: { ids }, signal });
    for (const each of memories) known.set(each.id, each);
    return memories;
  };
  let newer = memory.superseded_by ? [memory.superseded_by] : [];
  let older = replacedBy(memory);
  for (let step = 0; step < most && (newer.length || older.length); step += 1) {
    const found = await load([...newer, ...older].slice(0, 1000));
    const wasNewer = new Set(newer);
    newer = found.filter(({ id }) => wasNewer.has(id)).flatMap(({ superseded_by }) => superseded_by ?? []).filter((id) => !known.has(id));
    older = found.filter(({ id }) => !wasNewer.has(id)).flatMap(replacedBy).filter((id) => !known.has(id));
  }
  return { versions: [...known.values()].sort((one, other) => other.id - one.id), complete: !newer.length && !older.length };
}

/** All versions of a memory that replaced others, with their changes, loaded when opened. @param {{ memory: Memory }} props */
export function Versions({ memory }) {
  const [open, setOpen] = useState(false);
  const [most, setMost] = useState(SHOWN);
  const asked = useRequest(open ? (signal) => chainOf(memory, most, signal) : null, [memory.id, open, most, changes.value]);
  const replaced = replacedBy(memory);
  if (!replaced.length && !memory.superseded_by) return null;
  const versions = asked.answer?.versions ?? [];
  const byId = new Map(versions.map((each) => [each.id, each]));
  return html`${memory.superseded_by ? html`<p class="replaced">Replaced by <${MemoryLink} id=${memory.superseded_by} />.</p>` : null}
    ${replaced.length > 0 && html`<p>Replaces ${replaced.slice(0, SHOWN).map((id, place) => html`${place ? ", " : ""}<${MemoryLink} id=${id} />`)}.</p>`}
    <details onToggle=${(/** @type {Event} */ event) => setOpen(/** @type {HTMLDetailsElement} */ (event.target).open)}>
      <summary>Versions</summary>
      <${RequestState} ...${asked} />
      <ol class="history" reversed aria-label="Versions, the newest first">${versions.map((version) => {
        const before = replacedBy(version);
        const only = before.length === 1 ? byId.get(before[0]) : undefined;
        return html`<li key=${version.id} aria-current=${version.id === memory.id ? "true" : undefined}>
          <div>${version.id === memory.id ? html`<strong>Memory ${version.id}</strong>` : html`<${MemoryLink} id=${version.id} />`}
            <span class="faint"> · <${Time} at=${version.created_at} />${before.length > 1 ? ` · merged from ${before.length} memories` : ""}${version.superseded_by ? "" : " · current"}</span></div>
          ${only ? html`<${WordDiff} before=${only.text} after=${version.text} />` : html`<${StoredText} text=${version.text} />`}</li>`;
      })}</ol>
      ${asked.answer && !asked.answer.complete && html`<p><button type="button" onClick=${() => setMost(most * 5)}>Show more versions</button></p>`}
    </details>`;
}
