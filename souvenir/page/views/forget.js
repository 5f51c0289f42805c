import { KINDS, selectorOf } from "../parts/forget/kinds.js";
import { Pick } from "../parts/forget/pick.js";
import { Preview } from "../parts/forget/preview.js";
import { Erasure } from "../parts/forget/receipt.js";
import { ForgetSearch } from "../parts/forget/search.js";
import { html } from "../parts/html.js";
import { address, go, namespace, role, route } from "../state.js";
import { useEffect } from "../vendor/preact-hooks.js";

/** Erase data for good: choose it, see what will go, type its name, and keep the receipt. */
export function Forget() {
  const { query } = route.value;
  const named = query.get("kind") ?? "search";
  const kind = named in KINDS ? named : "search";
  const value = query.get("value") ?? "";
  const job = query.get("job");
  useEffect(() => {
    // What was erased is not named in the address of its receipt.
    if (job && query.size > (query.has("in") ? 2 : 1)) go("forget", { job }, { replace: true });
  }, [job]);
  if (role.value !== "admin")
    return html`<main id="main" tabindex="-1"><h1>Forget</h1><p>Only an admin key can forget data for good, in backups too.${role.value === "read-write" && " To delete a memory here, open it; a backup made before still has it."}</p></main>`;
  return html`<main id="main" tabindex="-1" class="scroll">
    <h1>Forget in <bdi>${namespace()}</bdi></h1>
    ${job ? html`<${Erasure} key=${job} id=${job} />` : html`<${Choice} kind=${kind} value=${value} />`}
  </main>`;
}

/** @param {{ kind: string, value: string }} props */
function Choice({ kind, value }) {
  const selector = selectorOf(route.value.query);
  return html`<p>Forgotten data is removed from the database, its indexes and its history, and on request from backups. No restore of a backup brings it back. Deleted data comes back with a backup made before.</p>
    <p><label>What <select value=${kind} onChange=${(/** @type {any} */ event) => go("forget", { kind: event.target.value })}>
      ${Object.entries(KINDS).map(([name, { label }]) => html`<option key=${name} value=${name}>${label}</option>`)}</select></label></p>
    ${kind === "search" && html`<${ForgetSearch} />`}
    ${KINDS[kind].asks && html`<${Pick} key=${kind} kind=${kind} value=${value} onChoose=${(/** @type {string} */ chosen) => go("forget", { kind, value: chosen })} />`}
    ${KINDS[kind].asks && value && html`<p><a href=${address("forget", { kind })}>Choose another one</a></p>`}
    ${selector && html`<${Preview} kind=${kind} value=${value} selector=${selector} />`}`;
}
