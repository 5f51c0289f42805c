import { call } from "../api.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { changes } from "./changes.js";
import { html } from "./html.js";
import { useRequest } from "./request.js";

/** @import { Schemas } from "../api.js" */
/** @typedef {{ chosen: string, archived: boolean, open: ReadonlySet<string>, at: string, onOpen: (path: string, on: boolean) => void, onChoose: (path: string) => void, onReach: (path: string) => void, onGone: (path: string) => void }} Tree `at` is the item that Tab reaches; empty for the first one. */

const LISTED = 200;
const INDENT_PX = 16;

/**
 * The tree of sources with the number of memories in each. A level is loaded when it is opened.
 * @param {{ chosen: string, archived: boolean, onChoose: (path: string | null) => void }} props
 */
export function SourceTree({ chosen, archived, onChoose }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [open, setOpen] = useState(/** @type {ReadonlySet<string>} */ (new Set(above(chosen))));
  const [at, setAt] = useState("");
  /** @type {Tree} */
  const tree = {
    chosen,
    archived,
    open,
    at,
    onOpen: (path, on) => setOpen(new Set([...open, path].filter((each) => on || each !== path))),
    onChoose: (path) => onChoose(path === chosen ? null : path),
    onReach: setAt,
    onGone: (path) => setAt((now) => (now === path ? "" : now)),
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const items = /** @type {HTMLElement[]} */ ([...(box.current?.querySelectorAll("[role=treeitem]") ?? [])]);
    const place = items.findIndex((item) => item === document.activeElement);
    if (place < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const item = items[place];
    const [path, expanded] = [item.dataset.path ?? "", item.getAttribute("aria-expanded")];
    /** @type {Record<string, () => unknown>} */
    const acts = {
      ArrowDown: () => items[place + 1]?.focus(),
      ArrowUp: () => items[place - 1]?.focus(),
      ArrowRight: () => (expanded === "false" ? tree.onOpen(path, true) : expanded && items[place + 1]?.focus()),
      ArrowLeft: () => (expanded === "true" ? tree.onOpen(path, false) : items.slice(0, place).findLast((other) => Number(other.ariaLevel) < Number(item.ariaLevel))?.focus()),
      Home: () => items[0].focus(),
      End: () => items.at(-1)?.focus(),
      Enter: () => item.click(),
      " ": () => item.click(),
    };
    const act = acts[{ j: "ArrowDown", k: "ArrowUp" }[event.key] ?? event.key];
    if (!act) return;
    event.preventDefault();
    // The list below has these keys too.
    event.stopPropagation();
    act();
  };
  return html`<div class="sources" role="tree" aria-label="Sources" ref=${box} onKeyDown=${onKey}>
    <${Level} below="" depth=${1} tree=${tree} />
  </div>`;
}

/**
 * A page of a level, and the pages after it.
 * @param {{ below: string, depth: number, from?: number, tree: Tree }} props
 */
function Level({ below, depth, from = 0, tree }) {
  const [more, setMore] = useState(false);
  const asked = useRequest(
    (signal) => call("GET", `folders?${new URLSearchParams({ below, offset: String(from), limit: String(LISTED), include_archived: String(tree.archived) })}`, { signal }),
    [below, tree.archived, changes.value],
  );
  /** @type {Schemas["FoldersResponse"] | null} */
  const answer = asked.answer;
  const nodes = answer?.folders ?? [];
  const first = nodes[0]?.below;
  useEffect(() => {
    // The item that asked for this page is gone.
    if (from && first) /** @type {HTMLElement | null} */ (document.querySelector(`.sources [data-path="${CSS.escape(first)}"]`))?.focus();
  }, [from > 0 && first !== undefined]);
  const left = answer ? answer.total - from - nodes.length : 0;
  return html`${nodes.map((node) => html`<${Node} key=${node.below} node=${node} depth=${depth} entered=${tree.at ? node.below === tree.at : depth === 1 && !from && node.below === first} tree=${tree} />`)}
    ${more && left > 0 && html`<${Level} below=${below} depth=${depth} from=${from + LISTED} tree=${tree} />`}
    ${!more && left > 0 && html`<div role="treeitem" tabindex="-1" aria-level=${depth} style=${indented(depth)} onClick=${() => setMore(true)}><span class="twist"></span>${left.toLocaleString("en")} more …</div>`}
    ${asked.error && html`<div role="treeitem" tabindex="-1" aria-level=${depth} style=${indented(depth)} class="error">${/** @type {Error} */ (asked.error).message}</div>`}`;
}

/** @param {{ node: Schemas["FolderRecord"], depth: number, entered: boolean, tree: Tree }} props */
function Node({ node, depth, entered, tree }) {
  const at = node.below ?? node.name;
  const isOpen = tree.open.has(at);
  useEffect(() => () => tree.onGone(at), []);
  const deeper = node.count > (node.own ?? node.count);
  const toggle = () => deeper && tree.onOpen(at, !isOpen);
  // Without a path, no filter takes exactly these memories.
  const { path } = node;
  // The items are siblings, so that the text of one is its name alone; their levels tell what is in what.
  return html`<div role="treeitem" tabindex=${entered ? 0 : -1} data-path=${at} aria-level=${depth} aria-expanded=${deeper ? String(isOpen) : undefined}
      aria-selected=${path ? tree.chosen === path : undefined} aria-disabled=${path || deeper ? undefined : "true"} style=${indented(depth)}
      onFocus=${() => tree.onReach(at)} onClick=${() => (path ? tree.onChoose(path) : toggle())}>
    <span class="twist" aria-hidden="true" onClick=${(/** @type {Event} */ event) => {
      if (!deeper) return;
      event.stopPropagation();
      toggle();
    }}>${deeper ? (isOpen ? "▾" : "▸") : ""}</span><bdi>${at === "/" ? at : `${node.name || "(no name)"}${deeper ? "/" : ""}`}</bdi> <span class="faint">${node.count.toLocaleString("en")}</span>
  </div>
  ${deeper && isOpen && html`<${Level} below=${at} depth=${depth + 1} tree=${tree} />`}`;
}

/** @param {number} depth */
const indented = (depth) => ({ paddingLeft: (depth - 1) * INDENT_PX });

/** The levels that a path is in, as `below` takes them: with the slash after an empty name only. @param {string} path */
const above = (path) => [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index) + (index === 0 || path[index - 1] === "/" ? "/" : ""));
