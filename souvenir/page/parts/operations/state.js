import { call } from "../../api.js";
import { namespace, role } from "../../state.js";
import { bytes } from "../figures.js";
import { html } from "../html.js";
import { duration, useWatch } from "../job-progress.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const EVERY_MS = 10_000;

/** Whether the service is ready, what an operator must look at, and for an admin the size of the namespace. */
export function State() {
  const admin = role.value === "admin";
  const asked = useRequest(
    (signal) =>
      Promise.all([
        // Answered with 503 while the service is not ready.
        call("GET", "health/ready", { signal, expected: 503 }),
        call("GET", "health", { signal }),
        admin ? call("GET", "stats", { signal }) : null,
        admin ? call("GET", "metrics", { signal }) : null,
      ]),
    [],
  );
  useWatch(true, asked.again, EVERY_MS);
  /** @type {[Schemas["ReadyResponse"] | { detail: Schemas["ReadyResponse"] }, Schemas["HealthResponse"], Schemas["StatsResponse"] | null, Schemas["MetricsResponse"] | null] | null} */
  const answer = asked.answer;
  if (!answer) return html`<${RequestState} ...${asked} />`;
  const [readiness, { version }, stats, metrics] = answer;
  const ready = "detail" in readiness ? readiness.detail : readiness;
  const rows = stats && [
    ["Memories", stats.total_memories.toLocaleString("en")],
    ["Embedding model", `${stats.model}, ${stats.dimension} dimensions`],
    ["Index in memory", bytes(stats.index_size_bytes)],
    ["Backups", stats.backup_count.toLocaleString("en")],
  ];
  return html`<section aria-label="State">
    <h2>State</h2>
    <${RequestState} error=${asked.error} slow=${false} />
    <p><strong>${ready.ready ? "Ready" : `Not ready: ${ready.status}`}</strong> <span class="faint">· version ${version}${metrics ? ` · running for ${duration(metrics.uptime_sec)}` : ""}</span></p>
    ${(ready.warnings ?? []).map(({ code, message }) => html`<p key=${code} class="warning">${message ?? code}</p>`)}
    ${
      rows &&
      html`<table class="figures"><caption class="faint">The namespace <bdi>${namespace()}</bdi></caption>
      <tbody>${rows.map(([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${value}</td></tr>`)}
      ${stats.last_updated && html`<tr><th scope="row">Last write</th><td><${Time} at=${stats.last_updated} /></td></tr>`}</tbody></table>`
    }
  </section>`;
}
