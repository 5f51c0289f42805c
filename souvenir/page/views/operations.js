import { call } from "../api.js";
import { bytes } from "../parts/figures.js";
import { html } from "../parts/html.js";
import { Audit } from "../parts/operations-audit.js";
import { Backups } from "../parts/operations-backups.js";
import { Charts } from "../parts/operations-charts.js";
import { Embedding } from "../parts/operations-embedding.js";
import { Jobs } from "../parts/operations-jobs.js";
import { Keys } from "../parts/operations-keys.js";
import { Usage } from "../parts/operations-usage.js";
import { RequestState, useRequest } from "../parts/request.js";
import { Time } from "../parts/text.js";
import { namespace, role } from "../state.js";

/** @import { Schemas } from "../api.js" */

export function Operations() {
  const admin = role.value === "admin";
  return html`<main id="main" tabindex="-1" class="scroll">
    <h1>Operations</h1>
    <${State} />
    ${admin && html`<${Charts} />`}
    <${Jobs} />
    ${admin && html`<${Backups} /><${Embedding} /><${Keys} />`}
    <${Usage} />
    ${admin && html`<${Audit} />`}
    ${!admin && html`<p class="faint">Keys, backups and the audit log are shown to an admin key.</p>`}
  </main>`;
}

function State() {
  const asked = useRequest(
    (signal) => Promise.all([readiness(signal), call("GET", "stats", { signal })]),
    [],
  );
  /** @type {[Schemas["ReadyResponse"], Schemas["StatsResponse"]] | null} */
  const answer = asked.answer;
  if (!answer) return html`<${RequestState} ...${asked} />`;
  const [ready, stats] = answer;
  const rows = [
    ["Memories", stats.total_memories.toLocaleString("en")],
    ["Embedding model", `${stats.model}, ${stats.dimension} dimensions`],
    ["Index in memory", bytes(stats.index_size_bytes)],
    ["Backups", stats.backup_count.toLocaleString("en")],
  ];
  return html`<section aria-label="State">
    <h2>State</h2>
    <${RequestState} ...${asked} />
    <p><strong>${ready.ready ? "Ready" : `Not ready: ${ready.status}`}</strong></p>
    ${(ready.warnings ?? []).map(({ code, message }) => html`<p key=${code} class="warning">${message ?? code}</p>`)}
    <table class="figures"><caption class="faint">The namespace <bdi>${namespace()}</bdi></caption>
      <tbody>${rows.map(([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${value}</td></tr>`)}
      ${stats.last_updated && html`<tr><th scope="row">Last write</th><td><${Time} at=${stats.last_updated} /></td></tr>`}</tbody>
    </table>
  </section>`;
}

/**
 * The readiness, which is answered with 503 while the service is not ready.
 * @param {AbortSignal} signal
 */
const readiness = (signal) => call("GET", "health/ready", { signal, expected: 503 });

