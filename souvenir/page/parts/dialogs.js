import { go, help, palette } from "../state.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";

const KEYS = [
  ["/", "Search"],
  ["j, k", "Next, previous"],
  ["Enter", "Open"],
  ["Esc", "Close"],
  ["Ctrl K", "Commands"],
  ["?", "These keys"],
];

/**
 * A modal dialog that a signal opens and closes.
 * @param {{ open: import("../vendor/preact-signals.js").Signal<boolean>, label: string, children?: unknown }} props
 */
function Dialog({ open, label, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    if (open.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open.value]);
  return html`<dialog ref=${dialog} aria-label=${label} onClose=${() => (open.value = false)}>${open.value && children}</dialog>`;
}

export function Help() {
  return html`<${Dialog} open=${help} label="Keys">
    <h1>Keys</h1>
    <table><tbody>${KEYS.map(([keys, what]) => html`<tr><th scope="row"><kbd>${keys}</kbd></th><td>${what}</td></tr>`)}</tbody></table>
    <button type="button" onClick=${() => (help.value = false)}>Close</button>
  <//>`;
}

/** @param {{ views: Record<string, { name: string }> }} props */
export function Palette({ views }) {
  const [text, setText] = useState("");
  const found = Object.entries(views).filter(([, { name }]) => name.toLowerCase().includes(text.toLowerCase()));
  /** @param {string} id */
  const choose = (id) => {
    palette.value = false;
    setText("");
    go(id);
  };
  return html`<${Dialog} open=${palette} label="Commands">
    <form onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      if (found[0]) choose(found[0][0]);
    }}>
      <input aria-label="Find a command" autofocus autocomplete="off" value=${text}
        onInput=${(/** @type {InputEvent} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)} />
    </form>
    ${found.map(([id, { name }]) => html`<p key=${id}><button type="button" onClick=${() => choose(id)}>${name}</button></p>`)}
  <//>`;
}
