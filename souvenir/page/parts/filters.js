import { call } from "../api.js";
import { useState } from "../vendor/preact-hooks.js";
import { changes } from "./changes.js";
import { html } from "./html.js";
import { Lazy } from "./lazy.js";
import { RequestState, useRequest } from "./request.js";

/** @import { Schemas } from "../api.js" */

const SHOWN_TAGS = 30;

const tree = () => import("./source-tree.js").then((module) => module.SourceTree);

/** The filters of a search, by their names in the address. */
export const FILTERS = ["source", "tags", "since", "until", "archived"];

/** The filters of the list of memories. */
export const LIST_FILTERS = ["source", "tags", "archived"];

/**
 * The filters in an address, as fields of a search.
 * @param {URLSearchParams} query
 * @returns {Partial<Schemas["SearchRequest"]>}
 */
export function filtersOf(query) {
  const source = query.get("source");
  const tags = tagsOf(query);
  const since = query.get("since");
  const until = query.get("until");
  return {
    ...(source ? { source_prefix: source, source_boundary: isPath(source) } : {}),
    ...(tags.length ? { tags } : {}),
    ...(since ? { since } : {}),
    ...(until ? { until } : {}),
    ...(query.get("archived") ? { include_archived: true } : {}),
  };
}

/**
 * The filters in an address, as parameters of the list of memories.
 * @param {URLSearchParams} query
 */
export function listFiltersOf(query) {
  const parameters = new URLSearchParams();
  const source = query.get("source");
  if (source) parameters.set("source", source);
  if (source && isPath(source)) parameters.set("source_boundary", "true");
  for (const tag of tagsOf(query)) parameters.append("tag", tag);
  if (query.get("archived")) parameters.set("include_archived", "true");
  return parameters.toString();
}

/**
 * Whether a source is a path that ends with a name. Of `/` and `a//`, where the name is empty, the slash tells what is in it.
 * @param {string} source
 */
const isPath = (source) => source !== "/" && !source.endsWith("//");

/** @param {URLSearchParams} query */
const tagsOf = (query) => (query.get("tags") ?? "").split(",").filter(Boolean).map(decodeURIComponent);

/** @param {string[]} tags */
const joined = (tags) => tags.map(encodeURIComponent).join(",") || null;

/**
 * @param {{ query: URLSearchParams, names: string[], onChange: (change: Record<string, string | null>) => void }} props
 *     `names` are the filters to offer, and `onChange` gets what changes in the address.
 */
export function Filters({ query, names, onChange }) {
  const count = names.filter((name) => query.get(name)).length;
  const [open, setOpen] = useState(count > 0);
  const known = useRequest(open ? (signal) => call("GET", `tags?limit=${SHOWN_TAGS}`, { signal }) : null, [open, open && changes.value]);
  /** @type {Schemas["TagsResponse"] | null} */
  const answer = known.answer;
  const chosen = tagsOf(query);
  const tags = [...new Set([...chosen, ...(answer?.tags ?? []).map(({ tag }) => tag)])];
  /** @param {string} name */
  const field = (name) => (/** @type {Event} */ event) =>
    onChange({ [name]: /** @type {HTMLInputElement} */ (event.target).value || null });
  return html`<details class="filters" open=${open}
      onToggle=${(/** @type {Event} */ event) => setOpen(/** @type {HTMLDetailsElement} */ (event.target).open)}>
    <summary>Filters${count ? ` (${count})` : ""}</summary>
    <div class="fields">
      <label>Source <input autocomplete="off" dir="auto" value=${query.get("source") ?? ""} onChange=${field("source")} /></label>
      ${
        names.includes("since") &&
        html`<label>From <input type="date" value=${query.get("since") ?? ""} onChange=${field("since")} /></label>
      <label>Until <input type="date" value=${query.get("until") ?? ""} onChange=${field("until")} /></label>`
      }
      <label><input type="checkbox" checked=${Boolean(query.get("archived"))}
        onChange=${(/** @type {Event} */ event) =>
          onChange({ archived: /** @type {HTMLInputElement} */ (event.target).checked ? "yes" : null })} /> Archived too</label>
      ${count > 0 && html`<button type="button" onClick=${() => onChange(Object.fromEntries(names.map((name) => [name, null])))}>Clear filters</button>`}
    </div>
    ${
      tags.length > 0 &&
      html`<div class="tags" role="group" aria-label="Tags">${tags.map((tag) => {
        const on = chosen.includes(tag);
        const change = () => onChange({ tags: joined(on ? chosen.filter((each) => each !== tag) : [...chosen, tag]) });
        return html`<button key=${tag} type="button" class="tag" aria-pressed=${on} onClick=${change}><bdi>${tag}</bdi></button>`;
      })}</div>`
    }
    <${RequestState} ...${known} />
    ${open && html`<${Lazy} load=${tree} chosen=${query.get("source") ?? ""} archived=${Boolean(query.get("archived"))} onChoose=${(/** @type {string | null} */ source) => onChange({ source })} />`}
  </details>`;
}
