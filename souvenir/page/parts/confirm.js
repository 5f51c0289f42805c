import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { giveFocusBack } from "./focus.js";
import { html } from "./html.js";
import { Problem } from "./problem.js";

/**
 * A dialog for what cannot be undone: it says what will go, and asks to type a word.
 * @param {{ label: string, word: string, action: string, onConfirm: () => Promise<unknown>, onClose: () => void, children?: unknown }} props
 */
export function Confirm({ label, word, action, onConfirm, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [typed, setTyped] = useState("");
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    const former = document.activeElement;
    dialog.current?.showModal();
    // When the dialog is gone, outside of which nothing can be focused.
    return () => queueMicrotask(() => giveFocusBack(former));
  }, []);
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await onConfirm();
      onClose();
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };
  return html`<dialog ref=${dialog} aria-label=${label} onClose=${onClose}>
    <h1>${label}</h1>
    ${children}
    <form onSubmit=${submit}>
      <label>Type <strong>${word}</strong> to confirm
        <input autocomplete="off" autofocus value=${typed}
          onInput=${(/** @type {InputEvent} */ event) => setTyped(/** @type {HTMLInputElement} */ (event.target).value)} />
      </label>
      <${Problem} error=${error} />
      <p><button class="danger" disabled=${busy || typed !== word}>${action}</button>
        <button type="button" onClick=${onClose}>Cancel</button></p>
    </form>
  </dialog>`;
}
