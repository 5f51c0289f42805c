import { call } from "../api.js";
import { go, help, key, palette, signedOut } from "../state.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { useRequest } from "./request.js";

/** @import { Schemas } from "../api.js" */

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

const MOST_AGENTS = 1000;
const MOST_FOUND = 12;

/** Commands by name: the views, the agents, and signing out. @param {{ views: Record<string, { name: string }> }} props */
export function Palette({ views }) {
  const [text, setText] = useState("");
  const load = (/** @type {AbortSignal} */ signal) => call("GET", `agents?limit=${MOST_AGENTS}`, { signal });
  /** @type {Schemas["AgentPage"] | null} */
  const known = useRequest(palette.value ? load : null, [palette.value]).answer;
  /** @type {[name: string, act: () => void][]} */
  const commands = [
    ...Object.entries(views).map(([id, { name }]) => /** @type {[string, () => void]} */ ([name, () => go(id)])),
    ...(known?.agents ?? []).map(({ name }) => /** @type {[string, () => void]} */ ([`Agent ${name}`, () => go("agents", { in: name })])),
    ["Keys", () => (help.value = true)],
  ];
  if (key.value) commands.push(["Sign out", () => signedOut("You are signed out.")]);
  const found = commands.filter(([name]) => name.toLowerCase().includes(text.toLowerCase())).slice(0, MOST_FOUND);
  /** @param {() => void} act */
  const choose = (act) => {
    palette.value = false;
    setText("");
    act();
  };
  return html`<${Dialog} open=${palette} label="Commands">
    <form onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      if (found[0]) choose(found[0][1]);
    }}>
      <input aria-label="Find a command" autofocus autocomplete="off" value=${text}
        onInput=${(/** @type {InputEvent} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)} />
    </form>
    ${found.map(([name, act]) => html`<p key=${name}><button type="button" onClick=${() => choose(act)}><bdi>${name}</bdi></button></p>`)}
  <//>`;
}
