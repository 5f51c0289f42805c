import { call } from "../api.js";
import { go, help, key, palette, signedOut } from "../state.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { settled, useRequest } from "./request.js";

/** @import { Schemas } from "../api.js" */

const KEYS = [
  ["/", "Search"],
  ["j, k, ↓, ↑", "Next, previous"],
  ["Enter", "Go to what is opened"],
  ["Space", "Choose for an action on several; Shift for a range"],
  ["Esc", "Close"],
  ["Ctrl K, ⌘K", "Commands"],
  ["?", "These keys"],
];

/**
 * A modal dialog, open as long as it is shown; closing it clears its signal.
 * @param {{ open: import("../vendor/preact-signals.js").Signal<boolean>, label: string, children?: unknown }} props
 */
function Dialog({ open, label, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => dialog.current?.showModal(), []);
  return html`<dialog ref=${dialog} aria-label=${label} onClose=${() => (open.value = false)}>${children}</dialog>`;
}

function Help() {
  return html`<${Dialog} open=${help} label="Keys">
    <h1>Keys</h1>
    <table><tbody>${KEYS.map(([keys, what]) => html`<tr><th scope="row"><kbd>${keys}</kbd></th><td>${what}</td></tr>`)}</tbody></table>
    <button type="button" onClick=${() => (help.value = false)}>Close</button>
  <//>`;
}

const MOST_FOUND = 12;
/** The tabs of the view of operations, as people look for them. */
const OPERATIONS = { backups: "Backups: make, restore", jobs: "Jobs", keys: "API keys", audit: "Audit log", usage: "Usage", model: "Embedding model", events: "Events and webhooks" };

/** @typedef {[name: string, what: string, act: () => void]} Command */

/** Commands by name: the views, agents, sources, and signing out. @param {{ views: Record<string, { name: string }> }} props */
function Palette({ views }) {
  const [text, setText] = useState("");
  const [place, setPlace] = useState(0);
  const typed = text.trim();
  const known = useRequest(
    (signal) => settled(signal).then(() => Promise.all([call("GET", `agents?limit=${MOST_FOUND}&name_prefix=${encodeURIComponent(typed)}`, { signal }), call("GET", "folders", { signal })])),
    [typed],
  );
  /** @type {[Schemas["AgentPage"], Schemas["FoldersResponse"]] | null} */
  const answer = known.answer;
  /** @type {Command[]} */
  const commands = [
    ...Object.entries(views).map(([id, { name }]) => /** @type {Command} */ ([name, "view", () => go(id)])),
    ...Object.entries(OPERATIONS).map(([show, name]) => /** @type {Command} */ ([name, "operations", () => go("operations", { show })])),
    ["Keys of the keyboard", "help", () => (help.value = true)],
    ...(key.value ? [/** @type {Command} */ (["Sign out", "", () => signedOut("You are signed out.")])] : []),
    ...(answer?.[0].agents ?? []).map(({ name }) => /** @type {Command} */ ([name, "agent", () => go("agents", { in: name })])),
    ...(answer?.[1].folders ?? []).map(({ name }) => /** @type {Command} */ ([`${name}/`, "source", () => go("memories", { source: name })])),
  ];
  if (typed) commands.push([typed, "search for it", () => go("search", { q: typed })]);
  const found = commands.filter(([name]) => name.toLowerCase().includes(typed.toLowerCase())).slice(0, MOST_FOUND);
  const chosen = Math.min(place, found.length - 1);
  /** @param {Command} command */
  const choose = ([, , act]) => {
    palette.value = false;
    act();
  };
  /** @param {KeyboardEvent} event */
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    setPlace((chosen + step + found.length) % found.length);
  };
  return html`<${Dialog} open=${palette} label="Commands">
    <form onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      if (found[chosen]) choose(found[chosen]);
    }}>
      <input role="combobox" aria-expanded="true" aria-controls="commands" aria-activedescendant=${`command-${chosen}`} aria-label="Find a command"
        placeholder="View, agent or source" autofocus autocomplete="off" value=${text} onKeyDown=${move}
        onInput=${(/** @type {InputEvent} */ event) => {
          setText(/** @type {HTMLInputElement} */ (event.target).value);
          setPlace(0);
        }} />
    </form>
    <div class="commands" id="commands" role="listbox" aria-label="Commands">${found.map(
      (command, at) => html`<div key=${`${command[1]} ${command[0]}`} id=${`command-${at}`} role="option" aria-selected=${at === chosen} onClick=${() => choose(command)}>
        <bdi>${command[0]}</bdi> <span class="faint">${command[1]}</span></div>`,
    )}</div>
  <//>`;
}

/** The dialog that is open. @param {{ views: Record<string, { name: string }> }} props */
export const Dialogs = ({ views }) => (palette.value ? html`<${Palette} views=${views} />` : html`<${Help} />`);
