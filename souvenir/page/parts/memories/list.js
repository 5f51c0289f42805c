import { role } from "../../state.js";
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { tagsOf } from "../changes.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { useListKeys } from "../list.js";
import { latest, theirs } from "../live.js";
import { Bulk } from "./bulk.js";
import { useMemoryPages } from "./pages.js";
import { Problem } from "../problem.js";
import { legible, Time } from "../text.js";

/** @import { Memory } from "../changes.js" */

const ROW_PX = 56;
const ROWS = 40;
const ROWS_ABOVE = 5;

/** Whether no control has the focus. */
const isIdle = () => document.activeElement === document.body || document.activeElement?.id === "main";

/**
 * A list of memories. Only the rows that are seen are in the document.
 * @param {{ filters: string, source: string, newest: boolean, open: number, onSelect: (id: number | null) => void, children?: unknown }} props
 */
export function MemoryList({ filters, source, newest, open, onSelect, children }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(latest);
  const first = Math.max(0, Math.floor(top / ROW_PX) - ROWS_ABOVE);
  const pages = useMemoryPages({ filters, newest, first, shown: ROWS });
  const { total, at } = pages;
  const choice = useChoice(pages);
  const writes = role.value !== "read-only";
  const selected = open > 0 ? pages.placeOf(open) : -1;
  /** @param {number} place */
  const select = (place) => {
    const memory = at(place);
    if (memory || place < 0) onSelect(memory?.id ?? null);
    const list = box.current;
    if (!list || place < 0) return;
    // Then Enter and Space are for the list.
    if (isIdle()) list.focus({ preventScroll: true });
    if (place * ROW_PX < list.scrollTop) list.scrollTop = place * ROW_PX;
    else if ((place + 1) * ROW_PX > list.scrollTop + list.clientHeight) list.scrollTop = (place + 1) * ROW_PX - list.clientHeight;
  };
  const renew = () => {
    setSeen(latest());
    pages.renew();
    if (box.current) box.current.scrollTop = 0;
  };
  useListKeys(total, selected, select, writes ? (from, to) => choice.extend(from, to) : undefined);
  useEffect(() => {
    // The focus was in the drawer, which is closed.
    if (!open && isIdle()) box.current?.focus({ preventScroll: true });
  }, [open]);
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (selected < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key !== " " || !writes) return;
    choice.choose(selected, event.shiftKey);
    event.preventDefault();
  };
  const rows = Array.from({ length: Math.max(0, Math.min(ROWS, total - first)) }, (_, step) => first + step);
  return html`<div class="toolbar"><span class="faint" role="status">${counted(total, "memory", "memories")}</span>
      ${writes && total > 0 && html`<button type="button" aria-pressed=${choice.on} onClick=${choice.on ? choice.stop : choice.start}>Choose several</button>`}
      ${children}
      <${New} seen=${seen} source=${source} onShow=${renew} /></div>
    ${choice.on && html`<${Bulk} choice=${choice} total=${total} filters=${filters} ceiling=${pages.ceiling} />`}
    <${Problem} error=${pages.error || choice.error} />
    <div class="list" ref=${box} role="listbox" aria-label="Memories" aria-multiselectable=${choice.on ? "true" : undefined} tabindex="0"
      aria-activedescendant=${rows.includes(selected) ? `row-${selected}` : undefined} onKeyDown=${onKey}
      onScroll=${(/** @type {Event} */ event) => setTop(/** @type {HTMLElement} */ (event.target).scrollTop)}>
      <div role="presentation" style=${{ height: total * ROW_PX }}></div>
      ${rows.map((place) => {
        const memory = at(place);
        return html`<${Row} key=${place} place=${place} total=${total} memory=${memory} current=${place === selected}
          marked=${choice.on ? memory !== undefined && choice.has(memory.id) : place === selected}
          onClick=${(/** @type {MouseEvent} */ event) => (choice.on ? choice.choose(place, event.shiftKey) : select(place))} />`;
      })}
    </div>`;
}

/** @param {{ place: number, total: number, memory: Memory | undefined, current: boolean, marked: boolean, onClick: (event: MouseEvent) => void }} props */
function Row({ place, total, memory, current, marked, onClick }) {
  return html`<div id=${`row-${place}`} class=${current ? "row current" : "row"} role="option" aria-selected=${marked} aria-posinset=${place + 1}
      aria-setsize=${total} style=${{ top: place * ROW_PX }} onClick=${onClick}>
    <div class="text" dir="auto">${memory ? legible(memory.text.slice(0, 300)) : "…"}</div>
    ${memory && html`<div class="faint text"><bdi>${memory.source}</bdi> · <${Time} at=${memory.created_at} />${memory.pinned ? " · pinned" : ""}${memory.archived ? " · archived" : ""}${tagsIn(tagsOf(memory))}</div>`}
  </div>`;
}

const SHOWN_TAGS = 3;

/** @param {string[]} tags */
const tagsIn = (tags) =>
  tags.length > 0 && html` · ${tags.slice(0, SHOWN_TAGS).map((tag, place) => html`${place > 0 && ", "}<bdi>${tag}</bdi>`)}${tags.length > SHOWN_TAGS ? ` +${tags.length - SHOWN_TAGS}` : ""}`;

/**
 * What others added and changed since the list was shown waits behind a button, so that nothing moves under the cursor.
 * @param {{ seen: number, source: string, onShow: () => void }} props
 */
function New({ seen, source, onShow }) {
  const { added, changed } = theirs(seen, source);
  const said = [added.size && `${added.size} new`, changed.size && `${changed.size} changed`].filter(Boolean).join(", ");
  return html`<span role="status">${said && html`<button type="button" class="new" onClick=${onShow}>${said}</button>`}</span>`;
}

/** @typedef {ReturnType<typeof useChoice>} Choice */

/**
 * The memories that an action on several is for: chosen ones, or every one of the list.
 * @param {import("./pages.js").Pages} pages
 */
function useChoice(pages) {
  const [on, setOn] = useState(false);
  const [every, setEvery] = useState(false);
  const [chosen, setChosen] = useState(/** @type {ReadonlyMap<number, Memory>} */ (new Map()));
  const [anchor, setAnchor] = useState(0);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  /**
   * @param {number} from
   * @param {number} to
   */
  const extend = async (from, to) => {
    setOn(true);
    setEvery(false);
    setAnchor(to);
    try {
      const found = await pages.need(Math.min(from, to), Math.max(from, to));
      setChosen((before) => new Map([...before, ...found.map((each) => /** @type {[number, Memory]} */ ([each.id, each]))]));
      setError(null);
    } catch (failed) {
      setError(failed);
    }
  };
  return {
    on,
    every,
    error,
    chosen: [...chosen.values()],
    /** @param {number} id */
    has: (id) => every || chosen.has(id),
    extend,
    /**
     * Choose a row or leave it out; with Shift, choose all rows from the last chosen one.
     * @param {number} place
     * @param {boolean} range
     */
    choose: (place, range) => {
      const memory = pages.at(place);
      if (range) return void extend(anchor, place);
      setOn(true);
      setEvery(false);
      setAnchor(place);
      if (memory) setChosen(chosen.has(memory.id) ? new Map([...chosen].filter(([id]) => id !== memory.id)) : new Map([...chosen, [memory.id, memory]]));
    },
    chooseEvery: () => setEvery(true),
    start: () => setOn(true),
    stop: () => {
      setOn(false);
      setEvery(false);
      setChosen(new Map());
    },
  };
}
