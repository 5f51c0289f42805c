import { call } from "../api.js";
import { useState } from "../vendor/preact-hooks.js";
import { changes, reason, tagsOf } from "./changes.js";
import { Confirm } from "./confirm.js";
import { counted } from "./figures.js";
import { html } from "./html.js";
import { notify } from "./notice.js";

/** @import { Schemas } from "../api.js" */

/**
 * Actions on several memories: archive and tag with undo, delete after a typed confirmation.
 * @param {{ chosen: Schemas["MemoryRecord"][], onDone: () => void }} props
 */
export function Bulk({ chosen, onDone }) {
  const [tag, setTag] = useState("");
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState("");
  const said = counted(chosen.length, "memory", "memories");
  const ids = chosen.map(({ id }) => id);
  /**
   * @param {number[]} these
   * @param {Partial<Schemas["PatchMemoryRequest"]>} change
   */
  const patchEach = async (these, change) => {
    try {
      for (const id of these) await call("PATCH", `memory/${id}`, { body: change });
    } finally {
      changes.value += 1;
    }
  };
  /** @param {() => Promise<void>} act */
  const tried = async (act) => {
    try {
      await act();
      onDone();
    } catch (failed) {
      setError(reason(failed));
    }
  };
  const archive = () =>
    tried(async () => {
      const active = chosen.filter(({ archived }) => !archived).map(({ id }) => id);
      await call("POST", "memory/archive-batch", { body: { ids } });
      changes.value += 1;
      notify(`${said} archived.`, () => patchEach(active, { archived: false }));
    });
  /** @param {Event} event */
  const addTag = (event) => {
    event.preventDefault();
    const name = tag.trim();
    return tried(async () => {
      const without = chosen.filter((each) => !tagsOf(each).some((other) => other.toLowerCase() === name.toLowerCase()));
      const changed = without.map(({ id }) => id);
      await patchEach(changed, { add_tags: [name] });
      notify(`The tag is added to ${counted(changed.length, "memory", "memories")}.`, () => patchEach(changed, { remove_tags: [name] }));
    });
  };
  const remove = async () => {
    await call("POST", "memory/delete-batch", { body: { ids } });
    changes.value += 1;
    notify(`${said} deleted.`);
    onDone();
  };
  return html`<div class="bulk" role="group" aria-label="Actions on several memories">
    <p role="status">${said} chosen. Click rows, or with Shift all rows in between.</p>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <form class="fields" onSubmit=${addTag}>
      <button type="button" disabled=${!ids.length} onClick=${archive}>Archive</button>
      <input aria-label="Tag to add" placeholder="Tag" maxlength="100" required autocomplete="off" dir="auto" value=${tag}
        onInput=${(/** @type {Event} */ event) => setTag(/** @type {HTMLInputElement} */ (event.target).value)} />
      <button disabled=${!ids.length}>Add the tag</button>
      <button type="button" class="danger" disabled=${!ids.length} onClick=${() => setAsking(true)}>Delete …</button>
      <button type="button" onClick=${onDone}>Done</button>
    </form>
    ${
      asking &&
      html`<${Confirm} label=${`Delete ${said}`} word=${`delete ${ids.length}`} action="Delete for good" onConfirm=${remove} onClose=${() => setAsking(false)}>
        <p>Their texts, facts and links are deleted and cannot be brought back here. Pinned memories are refused.</p>
      <//>`
    }
  </div>`;
}
