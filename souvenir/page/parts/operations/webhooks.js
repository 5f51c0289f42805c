import { call } from "../../api.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

/** The addresses that get the events of the namespace. */
export function Webhooks() {
  const asked = useRequest((signal) => call("GET", "webhooks", { signal }), []);
  /** @type {Schemas["WebhooksResponse"] | null} */
  const answer = asked.answer;
  return html`<section aria-label="Webhooks">
    <h2>Webhooks</h2>
    <${RequestState} error=${asked.error} slow=${asked.slow && !answer} />
    ${answer && !answer.webhooks.length && html`<p class="faint">No webhook gets these events. Programs register one with POST /webhooks.</p>`}
    ${
      answer &&
      answer.webhooks.length > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Address</th><th>Events</th><th>Since</th><th>State</th></tr></thead>
      <tbody>${answer.webhooks.map(
        (each) => html`<tr key=${each.id}><td class="id"><bdi>${each.url}</bdi></td><td>${each.events?.join(", ") ?? "all"}</td><td><${Time} at=${each.created_at} /></td>
        <td>${each.disabled_at ? html`<span class="error">disabled <${Time} at=${each.disabled_at} />${each.reason && html`: <bdi>${each.reason}</bdi>`}</span>` : "delivers"}</td></tr>`,
      )}</tbody></table></div>`
    }
  </section>`;
}
