import { changeMemory, memory } from "../api.js";
import { role } from "../state.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { StoredText, Time } from "./text.js";

/** @import { Schemas } from "../api.js" */

/** @param {{ id: number, onClose: () => void, children?: unknown }} props `children` follow the details. */
export function Drawer({ id, onClose, children }) {
  const [shown, setShown] = useState(/** @type {Schemas["MemoryRecord"] | null} */ (null));
  const [draft, setDraft] = useState(/** @type {string | null} */ (null));
  const [error, setError] = useState("");
  useEffect(() => {
    let wanted = true;
    setShown(null);
    setDraft(null);
    setError("");
    memory(id).then(
      (found) => wanted && setShown(found),
      (failed) => wanted && setError(failed.message),
    );
    return () => {
      wanted = false;
    };
  }, [id]);
  const save = async () => {
    if (draft === null) return;
    try {
      await changeMemory(id, { text: draft });
      setShown(await memory(id));
      setDraft(null);
      setError("");
    } catch (failed) {
      setError(
        failed instanceof TypeError
          ? "Not saved: the service cannot be reached."
          : String(/** @type {Error} */ (failed).message),
      );
    }
  };
  const tags = /** @type {string[]} */ (shown?.tags ?? []);
  return html`<aside class="drawer" aria-label="Memory">
    <header><h1>Memory ${id}</h1><button type="button" onClick=${onClose}>Close</button></header>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${
      shown &&
      draft === null &&
      html`<${StoredText} text=${shown.text} />
      ${shown.source && html`<h2>Source</h2><div dir="auto">${shown.source}</div>`}
      <h2>Created</h2><${Time} at=${shown.created_at} />
      ${tags.length ? html`<h2>Tags</h2><div dir="auto">${tags.join(", ")}</div>` : null}
      ${role.value !== "read-only" && html`<p><button type="button" onClick=${() => setDraft(shown.text)}>Edit</button></p>`}`
    }
    ${
      draft !== null &&
      html`<textarea aria-label="Text" value=${draft}
        onInput=${(/** @type {InputEvent} */ event) => setDraft(/** @type {HTMLTextAreaElement} */ (event.target).value)}></textarea>
      <p><button type="button" onClick=${save}>Save</button> <button type="button" onClick=${() => setDraft(null)}>Cancel</button></p>`
    }
    ${children}
  </aside>`;
}
