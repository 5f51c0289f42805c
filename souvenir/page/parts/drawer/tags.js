import { useState } from "../../vendor/preact-hooks.js";
import { hasTag, tagsOf, updateMemory } from "../changes.js";
import { html } from "../html.js";

/** @import { Memory } from "../changes.js" */

/**
 * The tags of a memory, to be added and removed by who may write. The drawer shows why a change was refused.
 * @param {{ memory: Memory, writes: boolean }} props
 */
export function Tags({ memory, writes }) {
  const [typed, setTyped] = useState("");
  const tags = tagsOf(memory);
  /** @param {Event} event */
  const add = (event) => {
    event.preventDefault();
    const tag = typed.trim();
    if (!tag || hasTag(memory, tag)) return;
    setTyped("");
    // What is typed comes back with the refusal.
    updateMemory(memory.id, { add_tags: [tag] }, { remove_tags: [tag] }, "Tag added.").catch(() => setTyped((now) => now || tag));
  };
  /** @param {string} tag */
  const remove = (tag) => updateMemory(memory.id, { remove_tags: [tag] }, { add_tags: [tag] }, "Tag removed.").catch(() => {});
  if (!tags.length && !writes) return null;
  return html`<h2>Tags</h2>
    <div class="tags">${tags.map(
      (tag) => html`<span key=${tag} class="chip"><bdi>${tag}</bdi>
        ${writes && html`<button type="button" aria-label=${`Remove the tag ${tag}`} onClick=${() => remove(tag)}>×</button>`}</span>`,
    )}</div>
    ${
      writes &&
      html`<form class="add-tag" onSubmit=${add}>
      <input aria-label="New tag" placeholder="New tag" maxlength="100" autocomplete="off" dir="auto" value=${typed}
        onInput=${(/** @type {InputEvent} */ event) => setTyped(/** @type {HTMLInputElement} */ (event.target).value)} />
      <button disabled=${!typed.trim()}>Add</button></form>`
    }`;
}
