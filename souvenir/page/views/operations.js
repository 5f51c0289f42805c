import { Feed } from "../parts/feed.js";
import { html } from "../parts/html.js";
import { Audit } from "../parts/operations/audit.js";
import { Backups } from "../parts/operations/backups.js";
import { Charts } from "../parts/operations/charts.js";
import { Embedding } from "../parts/operations/embedding.js";
import { Jobs } from "../parts/operations/jobs.js";
import { Keys } from "../parts/operations/keys.js";
import { State } from "../parts/operations/state.js";
import { Usage } from "../parts/operations/usage.js";
import { Webhooks } from "../parts/operations/webhooks.js";
import { address, role, route } from "../state.js";

/** @type {Record<string, { name: string, admin?: boolean, show: (admin: boolean) => unknown }>} */
const TABS = {
  state: { name: "State", show: (admin) => html`<${State} />${admin && html`<${Charts} />`}` },
  jobs: { name: "Jobs", show: () => html`<${Jobs} />` },
  backups: { name: "Backups", admin: true, show: () => html`<${Backups} />` },
  model: { name: "Model", admin: true, show: () => html`<${Embedding} />` },
  keys: { name: "Keys", admin: true, show: () => html`<${Keys} />` },
  usage: { name: "Usage", show: () => html`<${Usage} />` },
  audit: { name: "Audit", admin: true, show: () => html`<${Audit} />` },
  events: { name: "Events", show: () => html`<${Feed} view="operations" />${role.value !== "read-only" && html`<${Webhooks} />`}` },
};

/** Sections that operate the service, as tabs in the address. */
export function Operations() {
  const admin = role.value === "admin";
  const offered = Object.entries(TABS).filter(([, tab]) => admin || !tab.admin);
  const named = route.value.query.get("show") ?? "state";
  const [shown, tab] = offered.find(([id]) => id === named) ?? offered[0];
  return html`<main id="main" tabindex="-1" class="scroll">
    <h1>Operations</h1>
    <ul class="tabs wrap">${offered.map(([id, { name }]) => html`<li key=${id}><a href=${address("operations", { show: id })} aria-current=${id === shown ? "page" : undefined}>${name}</a></li>`)}</ul>
    ${tab.show(admin)}
    ${!admin && html`<p class="faint">Load, keys, backups, the model and the audit log are shown to an admin key.</p>`}
  </main>`;
}
