import { call } from "../../api.js";
import { go, route } from "../../state.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const PAGE = 50;
const ACTIONS = [
  "memory.add", "memory.update", "memory.archive", "memory.delete", "memory.supersede", "memory.import", "key.create", "key.update",
  "key.rotate", "key.revoke", "job.submit", "job.cancel", "backup.create", "backup.restore", "erase", "export", "access.set", "policy.set",
  "profile.set", "model.reload", "audit.purge", "denied",
];
const FILTERS = ["action", "actor", "since", "until"];

/** Changes of memories, acts of admins and denied requests of all namespaces. Filters and page are in the address. */
export function Audit() {
  const { query } = route.value;
  const kept = Object.fromEntries(FILTERS.map((name) => [name, query.get(name)]));
  const from = Math.max(0, Number(query.get("from")) || 0);
  const parameters = new URLSearchParams({ limit: String(PAGE), offset: String(from) });
  for (const name of FILTERS) if (kept[name]) parameters.set(name === "actor" ? "key_id" : name, String(kept[name]));
  const asked = useRequest((signal) => call("GET", `audit?${parameters}`, { signal }), [parameters.toString()]);
  const known = useRequest((signal) => call("GET", "api/keys", { signal }), []);
  /** @type {Schemas["AuditResponse"] | null} */
  const answer = asked.answer;
  /** @type {Schemas["KeyRecord"][]} */
  const keys = known.answer?.keys ?? [];
  /** @param {Record<string, string | number | null>} change */
  const change = (change) => go("operations", { show: "audit", ...kept, ...change });
  /** @param {string} name */
  const field = (name) => (/** @type {any} */ event) => change({ [name]: event.target.value.trim() });
  const nameOf = (/** @type {string} */ actor) => keys.find(({ id }) => actor === `key:${id}`)?.name ?? actor;
  return html`<section aria-label="Audit log">
    <h2>Audit log</h2>
    <div class="field-row">
      <label>Action <input list="actions" autocomplete="off" placeholder="all" value=${kept.action ?? ""} onChange=${field("action")} /></label>
      <datalist id="actions">${ACTIONS.map((each) => html`<option key=${each} value=${each}></option>`)}</datalist>
      <label>Actor <select value=${kept.actor ?? ""} onChange=${field("actor")}><option value="">all</option><option value="anonymous">anonymous</option><option value="api-key">api-key (API_KEY)</option>
        ${keys.map(({ id, name }) => html`<option key=${id} value=${id}>${name}</option>`)}</select></label>
      <label>From <input type="date" value=${kept.since ?? ""} onChange=${field("since")} /></label>
      <label>Until <input type="date" value=${kept.until ?? ""} onChange=${field("until")} /></label>
      ${FILTERS.some((name) => kept[name]) && html`<button type="button" onClick=${() => go("operations", { show: "audit" })}>Clear filters</button>`}
    </div>
    <${RequestState} error=${asked.error} slow=${asked.slow && !answer} />
    ${answer && !answer.entries.length && html`<p>Nothing was recorded.</p>`}
    ${
      answer &&
      answer.entries.length > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Time</th><th>Action</th><th>Actor</th><th>Namespace</th><th>Resource</th><th>Detail</th></tr></thead>
        <tbody>${answer.entries.map(
          (each) => html`<tr key=${each.id}><td><${Time} at=${each.at} /></td><td>${each.action}${each.count > 1 ? ` (${each.count} times)` : ""}${each.route ? html` <span class="faint">${each.method} ${each.route} ${each.status}</span>` : null}${each.imported && html` <span class="faint">imported</span>`}</td>
          <td><bdi title=${each.actor}>${nameOf(each.actor)}</bdi></td><td><bdi>${each.namespace ?? ""}</bdi></td><td class="id"><bdi>${each.resource_id ?? ""}</bdi></td><td class="id"><bdi>${each.detail ?? ""}</bdi>${each.address && html` <span class="faint">${each.address}</span>`}</td></tr>`,
        )}</tbody></table></div>`
    }
    ${answer && (from > 0 || answer.has_more) && html`<p>${from > 0 && html`<button type="button" onClick=${() => change({ from: from > PAGE ? from - PAGE : null })}>Newer</button>`}
      ${answer.has_more && html`<button type="button" onClick=${() => change({ from: from + PAGE })}>Older</button>`}</p>`}
  </section>`;
}
