import { Filters, LIST_FILTERS, listFiltersOf } from "../parts/filters.js";
import { html } from "../parts/html.js";
import { LazyDrawer } from "../parts/lazy.js";
import { Running } from "../parts/memories/bulk.js";
import { MemoryList } from "../parts/memories/list.js";
import { go, route } from "../state.js";

const ORDERS = [
  ["", "newest first"],
  ["oldest", "oldest first"],
];

/** The memories of a namespace, with filters and order in the address. */
export function Memories() {
  const { query } = route.value;
  const kept = Object.fromEntries([...LIST_FILTERS, "order"].map((name) => [name, query.get(name)]));
  const filters = listFiltersOf(query);
  const order = query.get("order") ?? "";
  const open = Number(query.get("memory") ?? 0);
  /** @param {number | null} id */
  const select = (id) => go("memories", { ...kept, memory: id }, { replace: open > 0 });
  /** @param {Record<string, string | null>} change */
  const change = (change) => go("memories", { ...kept, ...change });
  return html`<main id="main" class="memories" tabindex="-1">
      <h1>Memories</h1>
      <${Filters} query=${query} names=${LIST_FILTERS} onChange=${change} />
      <${Running} />
      <${MemoryList} key=${`${filters} ${order}`} filters=${filters} source=${query.get("source") ?? ""} newest=${order !== "oldest"} open=${open} onSelect=${select}>
        <label>Order <select value=${order} onChange=${(/** @type {Event} */ event) => change({ order: /** @type {HTMLSelectElement} */ (event.target).value })}>
          ${ORDERS.map(([value, name]) => html`<option key=${value} value=${value}>${name}</option>`)}</select></label>
      <//>
    </main>
    ${open > 0 && html`<${LazyDrawer} id=${open} onClose=${() => select(null)} />`}`;
}
