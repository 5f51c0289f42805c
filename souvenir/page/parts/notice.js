// Short notices at the bottom of the page, with Undo where the service can take a change back.
import { signal } from "../vendor/preact-signals.js";
import { here } from "../api.js";
import { html } from "./html.js";

/** @import { Place } from "../api.js" */

const SHOWN_MS = 8000;

/** @type {import("../vendor/preact-signals.js").Signal<{ text: string, undo?: () => unknown } | null>} */
const notice = signal(null);
let timer = 0;

/**
 * Show a notice for 8 seconds, instead of the one before.
 * @param {string} text
 * @param {() => unknown} [undo] Takes the change back.
 * @param {Place} [at] Where the change was made; by default here.
 */
export function notify(text, undo, at = here()) {
  clearTimeout(timer);
  const takeBack = () => {
    const now = here();
    if (now.namespace !== at.namespace || now.key !== at.key) throw new Error(`the change was made in the namespace ${at.namespace ?? "default"}. Go back to it to undo.`);
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
      // Unless something else was said meanwhile.
      if (!notice.value) notify("Undone.");
    } catch (error) {
      notify(`Not undone: ${/** @type {Error} */ (error).message}`);
    }
  };
  return html`<div role="status">
    ${shown && html`<p class="notice">${shown.text} ${shown.undo && html`<button type="button" onClick=${takeBack}>Undo</button>`}</p>`}
  </div>`;
}
