import { useState } from "../vendor/preact-hooks.js";
import { patchMemory, reason, tagsOf } from "./changes.js";
import { html } from "./html.js";
import { notify } from "./notice.js";

/** @import { Memory } from "./changes.js" */

/**
 * The tags of a memory, to be added and removed by who may write.
 * @param {{ memory: Memory, writes: boolean }} props
 */
export function Tags({ memory, writes }) {
  const [typed, setTyped] = useState("");
  const [error, setError] = useState("");
  const tags = tagsOf(memory);
  /**
   * @param {string} tag
   * @param {boolean} on
   */
  const change = async (tag, on) => {
    try {
      await patchMemory(memory.id, on ? { add_tags: [tag] } : { remove_tags: [tag] });
      setError("");
      notify(on ? "Tag added." : "Tag removed.", () =>
        patchMemory(memory.id, on ? { remove_tags: [tag] } : { add_tags: [tag] }),
      );
    } catch (failed) {
      setError(reason(failed));
      return;
    }
    if (on) setTyped("");
  };
  /** @param {Event} event */
  const add = (event) => {
    event.preventDefault();
    const tag = typed.trim();
    if (tag && !tags.some((each) => each.toLowerCase() === tag.toLowerCase())) void change(tag, true);
  };
  if (!tags.length && !writes) return null;
  return html`<h2>Tags</h2>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <div class="tags">${tags.map(
      (tag) => html`<span key=${tag} class="chip"><bdi>${tag}</bdi>
        ${writes && html`<button type="button" aria-label=${`Remove the tag ${tag}`} onClick=${() => change(tag, false)}>×</button>`}</span>`,
    )}</div>
    ${
      writes &&
      html`<form class="add-tag" onSubmit=${add}>
      <input aria-label="New tag" placeholder="New tag" maxlength="100" autocomplete="off" dir="auto" value=${typed}
        onInput=${(/** @type {InputEvent} */ event) => setTyped(/** @type {HTMLInputElement} */ (event.target).value)} />
      <button disabled=${!typed.trim()}>Add</button></form>`
    }`;
}
