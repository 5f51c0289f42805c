// Short notices at the bottom of the page, with Undo where the service can take a change back.
import { signal } from "../vendor/preact-signals.js";
import { namespace } from "../state.js";
import { html } from "./html.js";

const SHOWN_MS = 8000;

/** @type {import("../vendor/preact-signals.js").Signal<{ text: string, undo?: () => unknown } | null>} */
const notice = signal(null);
let timer = 0;

/**
 * Show a notice for 8 seconds, instead of the one before.
 * @param {string} text
 * @param {() => unknown} [undo] Takes the change back.
 */
export function notify(text, undo) {
  clearTimeout(timer);
  const changed = namespace();
  const takeBack = () => {
    if (namespace() !== changed) throw new Error(`the change was made in the namespace ${changed}.`);
    return undo?.();
  };
  notice.value = { text, undo: undo && takeBack };
  timer = setTimeout(() => (notice.value = null), SHOWN_MS);
}

export function Notice() {
  const shown = notice.value;
  const takeBack = async () => {
    notice.value = null;
    try {
      await shown?.undo?.();
    } catch (error) {
      notify(`Not undone: ${/** @type {Error} */ (error).message}`);
    }
  };
  return html`<div role="status">
    ${shown && html`<p class="notice">${shown.text} ${shown.undo && html`<button type="button" onClick=${takeBack}>Undo</button>`}</p>`}
  </div>`;
}
