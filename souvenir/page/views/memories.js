import { memories } from "../api.js";
import { changes } from "../parts/changes.js";
import { Filters, LIST_FILTERS, listFiltersOf } from "../parts/filters.js";
import { html } from "../parts/html.js";
import { LazyDrawer } from "../parts/lazy.js";
import { useListKeys } from "../parts/list.js";
import { Bulk } from "../parts/memory-bulk.js";
import { Time } from "../parts/text.js";
import { go, offline, role, route } from "../state.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

/** @import { Schemas } from "../api.js" */
/** @typedef {Schemas["MemoryRecord"]} Memory */

const ROW_PX = 56;
const CHUNK = 100;
const SETTLE_MS = 60;

/** The memories of a namespace, with filters in the address. */
export function Memories() {
  const { query } = route.value;
  const kept = Object.fromEntries(LIST_FILTERS.map((name) => [name, query.get(name)]));
  const filters = listFiltersOf(query);
  const open = Number(query.get("memory") ?? 0);
  /** @param {number | null} id */
  const select = (id) => go("memories", { ...kept, memory: id }, { replace: open > 0 });
  return html`<main id="main" tabindex="-1">
      <h1>Memories</h1>
      <${Filters} query=${query} names=${LIST_FILTERS} onChange=${(/** @type {Record<string, string | null>} */ change) => go("memories", { ...kept, ...change })} />
      <${List} key=${filters} filters=${filters} open=${open} onSelect=${select} />
    </main>
    ${open > 0 && html`<${LazyDrawer} id=${open} onClose=${() => select(null)} />`}`;
}

/**
 * Only the rows that are seen are in the document, and only their chunks are loaded.
 * @param {{ filters: string, open: number, onSelect: (id: number | null) => void }} props
 */
function List({ filters, open, onSelect }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const fresh = useRef(/** @type {Set<number>} */ (new Set()));
  const [loaded, setLoaded] = useState(/** @type {Map<number, Memory>} */ (new Map()));
  const [chosen, setChosen] = useState(/** @type {Map<number, Memory>} */ (new Map()));
  const [choosing, setChoosing] = useState(false);
  const [anchor, setAnchor] = useState(0);
  const [total, setTotal] = useState(0);
  const [top, setTop] = useState(0);
  const [error, setError] = useState("");
  const first = Math.max(0, Math.floor(top / ROW_PX) - 5);
  const last = Math.min(total, first + 40);
  useEffect(() => fresh.current.clear(), [changes.value]);
  useEffect(() => {
    const cancelled = new AbortController();
    const load = async () => {
      for (const chunk of new Set([Math.floor(first / CHUNK), Math.floor(Math.max(first, last - 1) / CHUNK)])) {
        if (fresh.current.has(chunk)) continue;
        try {
          const page = await memories(chunk * CHUNK, CHUNK, filters, cancelled.signal);
          fresh.current.add(chunk);
          setTotal(page.total);
          setLoaded((before) => new Map([...before, ...placed(page)]));
          setError("");
        } catch (failed) {
          if (!cancelled.signal.aborted && !(failed instanceof TypeError))
            setError(String(/** @type {Error} */ (failed).message));
        }
      }
    };
    const timer = setTimeout(load, SETTLE_MS);
    return () => {
      clearTimeout(timer);
      cancelled.abort();
    };
  }, [first, last, offline.value, changes.value]);
  let selected = -1;
  for (const [place, { id }] of loaded) if (id === open && place < total) selected = place;
  /** @param {number} place */
  const select = (place) => {
    onSelect(loaded.get(place)?.id ?? null);
    const list = box.current;
    if (!list || place < 0) return;
    if (place * ROW_PX < list.scrollTop) list.scrollTop = place * ROW_PX;
    else if ((place + 1) * ROW_PX > list.scrollTop + list.clientHeight)
      list.scrollTop = (place + 1) * ROW_PX - list.clientHeight;
  };
  /**
   * Choose a row for an action on several, or with Shift all rows from the last chosen one.
   * @param {number} place
   * @param {boolean} range
   */
  const choose = (place, range) => {
    const after = new Map(chosen);
    const [from, to] = range ? [Math.min(anchor, place), Math.max(anchor, place)] : [place, place];
    for (let at = from; at <= to; at++) {
      const each = loaded.get(at);
      if (each && !range && after.has(each.id)) after.delete(each.id);
      else if (each) after.set(each.id, each);
    }
    setAnchor(place);
    setChosen(after);
    setChoosing(true);
  };
  const stop = () => {
    setChosen(new Map());
    setChoosing(false);
  };
  useListKeys(total, selected, select);
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, step) => first + step);
  return html`<p><span class="faint" role="status">${total.toLocaleString("en")} memories</span>
      ${role.value !== "read-only" && total > 0 && html` <button type="button" aria-pressed=${choosing} onClick=${() => (choosing ? stop() : setChoosing(true))}>Choose several</button>`}</p>
    ${choosing && html`<${Bulk} chosen=${[...chosen.values()]} onDone=${stop} />`}
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <div class="list" ref=${box} role="listbox" aria-label="Memories" aria-multiselectable=${choosing ? "true" : undefined} tabindex="0"
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
        if (event.key !== " " || selected < 0 || role.value === "read-only") return;
        event.preventDefault();
        choose(selected, event.shiftKey);
      }}
      onScroll=${(/** @type {Event} */ event) => setTop(/** @type {HTMLElement} */ (event.target).scrollTop)}>
      <div role="presentation" style=${{ height: total * ROW_PX }}></div>
      ${rows.map((place) => {
        const each = loaded.get(place);
        const marked = choosing ? each !== undefined && chosen.has(each.id) : place === selected;
        return html`<div key=${place} class="row" role="option" aria-selected=${marked} aria-posinset=${place + 1}
            aria-setsize=${total} style=${{ top: place * ROW_PX }}
            onClick=${(/** @type {MouseEvent} */ event) => (choosing ? choose(place, event.shiftKey) : select(place))}>
          <div class="text" dir="auto">${each ? each.text.slice(0, 300) : "…"}</div>
          ${each && html`<div class="faint"><bdi>${each.source}</bdi> · <${Time} at=${each.created_at} />${each.pinned ? " · pinned" : ""}${each.archived ? " · archived" : ""}</div>`}
        </div>`;
      })}
    </div>`;
}

/**
 * @param {Schemas["MemoryPage"]} page
 * @returns {[place: number, memory: Memory][]}
 */
const placed = (page) => page.memories.map((each, place) => [page.offset + place, each]);
