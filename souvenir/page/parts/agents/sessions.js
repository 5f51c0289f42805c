import { call } from "../../api.js";
import { address, go, route } from "../../state.js";
import { Turns } from "./turns.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { MessageSearch } from "./message-search.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const AT_ONCE = 100;

/**
 * The search over the messages of an agent, and its sessions or the turns of the one in the address.
 * @param {{ agent: string }} props
 */
export function Conversations({ agent }) {
  const { query } = route.value;
  const session = query.get("session");
  const find = query.get("find") ?? "";
  const shown = { show: "conversations", session };
  return html`<${MessageSearch} agent=${agent} session=${session} find=${find}
      onFind=${(/** @type {string} */ text) => go("agents", { ...shown, message: query.get("message"), find: text }, { replace: true })} />
    ${session ? html`<${Turns} key=${session} agent=${agent} session=${session} />` : html`<${Sessions} agent=${agent} />`}`;
}

/** @param {{ agent: string }} props */
function Sessions({ agent }) {
  const from = Math.max(0, Number(route.value.query.get("from")) || 0);
  const asked = useRequest((signal) => call("GET", `sessions/${encodeURIComponent(agent)}?limit=${AT_ONCE}&offset=${from}`, { signal }), [agent, from]);
  /** @type {Schemas["SessionPage"] | null} */
  const answer = asked.answer;
  const list = { show: "conversations", find: route.value.query.get("find") };
  return html`<${RequestState} ...${asked} />
    ${answer && !answer.total && html`<p>No conversation was stored yet.</p>`}
    ${
      answer &&
      answer.total > 0 &&
      html`<div class="wide-table" tabindex="0"><table><caption class="faint">${counted(answer.total, "conversation", "conversations")}, newest first</caption>
      <thead><tr><th>Session</th><th>User</th><th>Messages</th><th>Last message</th></tr></thead>
      <tbody>${answer.sessions.map(
        (each) => html`<tr key=${each.session_id}><td><a href=${address("agents", { show: "conversations", session: each.session_id })}><bdi>${each.title ?? each.session_id}</bdi></a></td>
          <td><bdi>${each.user ?? ""}</bdi></td><td>${each.messages.toLocaleString("en")}</td><td><${Time} at=${each.last_message_at ?? each.started_at} /></td></tr>`,
      )}</tbody></table></div>
      <p>${from > 0 && html`<a href=${address("agents", { ...list, from: Math.max(0, from - AT_ONCE) || null })}>Newer</a> `}
        ${answer.total > from + AT_ONCE && html`<a href=${address("agents", { ...list, from: from + AT_ONCE })}>Older</a>`}</p>`
    }`;
}
