import { call } from "../api.js";
import { html } from "./html.js";
import { RequestState, useRequest } from "./request.js";
import { Time } from "./text.js";

/** @import { Schemas } from "../api.js" */

const LATEST = 30;

export function Audit() {
  const asked = useRequest((signal) => call("GET", `audit?limit=${LATEST}`, { signal }), []);
  /** @type {Schemas["AuditResponse"] | null} */
  const answer = asked.answer;
  return html`<section aria-label="Audit log">
    <h2>Audit log</h2>
    <${RequestState} ...${asked} />
    ${answer && !answer.entries.length && html`<p>Nothing was recorded yet.</p>`}
    ${
      answer &&
      answer.entries.length > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Time</th><th>Action</th><th>Actor</th><th>Namespace</th><th>Resource</th></tr></thead>
        <tbody>${answer.entries.map(
          (each) => html`<tr key=${each.id}><td><${Time} at=${each.at} /></td><td>${each.action}${each.count > 1 ? ` (${each.count} times)` : ""}${each.route ? html` <span class="faint">${each.method} ${each.route} ${each.status}</span>` : null}</td>
          <td><bdi>${each.actor}</bdi></td><td><bdi>${each.namespace ?? ""}</bdi></td><td><bdi>${each.resource_id ?? ""}</bdi></td></tr>`,
        )}</tbody></table></div>`
    }
  </section>`;
}
