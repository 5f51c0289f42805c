import { memories } from "../api.js";
import { Drawer } from "../parts/drawer.js";
import { html } from "../parts/html.js";
import { useListKeys } from "../parts/list.js";
import { Time } from "../parts/text.js";
import { go, offline, route } from "../state.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

/** @import { Schemas } from "../api.js" */

const ROW_PX = 56;
const CHUNK = 100;
const SETTLE_MS = 60;

/** The list of all memories. Only the rows that are seen are in the document, and only their chunks are loaded. */
export function Memories() {
  const open = Number(route.value.query.get("memory") ?? 0);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [loaded, setLoaded] = useState(/** @type {Map<number, Schemas["MemoryRecord"]>} */ (new Map()));
  const [total, setTotal] = useState(0);
  const [top, setTop] = useState(0);
  const [error, setError] = useState("");
  const first = Math.max(0, Math.floor(top / ROW_PX) - 5);
  const last = Math.min(total, first + 40);
  useEffect(() => {
    const cancelled = new AbortController();
    const load = async () => {
      for (const chunk of new Set([Math.floor(first / CHUNK), Math.floor(Math.max(first, last - 1) / CHUNK)])) {
        if (loaded.has(chunk * CHUNK)) continue;
        try {
          const page = await memories(chunk * CHUNK, CHUNK, cancelled.signal);
          setTotal(page.total);
          setLoaded(
            (before) =>
              new Map([
                ...before,
                ...page.memories.map(
                  (each, place) => /** @type {[number, Schemas["MemoryRecord"]]} */ ([page.offset + place, each]),
                ),
              ]),
          );
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
  }, [first, last, offline.value]);
  let selected = -1;
  for (const [place, { id }] of loaded) if (id === open) selected = place;
  /** @param {number} place */
  const select = (place) => {
    go("memories", { memory: loaded.get(place)?.id ?? null }, { replace: open > 0 });
    const list = box.current;
    if (!list || place < 0) return;
    if (place * ROW_PX < list.scrollTop) list.scrollTop = place * ROW_PX;
    else if ((place + 1) * ROW_PX > list.scrollTop + list.clientHeight)
      list.scrollTop = (place + 1) * ROW_PX - list.clientHeight;
  };
  useListKeys(total, selected, select);
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, step) => first + step);
  return html`<main id="main" tabindex="-1">
      <h1>Memories</h1>
      <p class="faint" role="status">${total.toLocaleString("en")} memories</p>
      ${error && html`<p class="error" role="alert">${error}</p>`}
      <div class="list" ref=${box} role="listbox" aria-label="Memories" tabindex="0"
        onScroll=${(/** @type {Event} */ event) => setTop(/** @type {HTMLElement} */ (event.target).scrollTop)}>
        <div role="presentation" style=${{ height: total * ROW_PX }}></div>
        ${rows.map((place) => {
          const each = loaded.get(place);
          return html`<div key=${place} class="row" role="option" aria-selected=${place === selected} aria-posinset=${place + 1}
              aria-setsize=${total} style=${{ top: place * ROW_PX }} onClick=${() => select(place)}>
            <div class="text" dir="auto">${each ? each.text.slice(0, 300) : "…"}</div>
            ${each && html`<div class="faint"><bdi>${each.source}</bdi> · <${Time} at=${each.created_at} /></div>`}
          </div>`;
        })}
      </div>
    </main>
    ${open > 0 && html`<${Drawer} id=${open} onClose=${() => select(-1)} />`}`;
}
