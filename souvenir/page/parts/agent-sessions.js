import { call } from "../api.js";
import { address, route } from "../state.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { counted } from "./figures.js";
import { html } from "./html.js";
import { RequestState, useRequest } from "./request.js";
import { StoredText, Time } from "./text.js";

/** @import { Schemas } from "../api.js" */

const AT_ONCE = 100;

/**
 * The sessions of an agent, or the messages of the one in the address.
 * @param {{ agent: string }} props
 */
export function Conversations({ agent }) {
  const session = route.value.query.get("session");
  return session ? html`<${Turns} agent=${agent} session=${session} />` : html`<${Sessions} agent=${agent} />`;
}

/** @param {{ agent: string }} props */
function Sessions({ agent }) {
  const [shown, setShown] = useState(AT_ONCE);
  const asked = useRequest((signal) => call("GET", `sessions/${encodeURIComponent(agent)}?limit=${shown}`, { signal }), [agent, shown]);
  /** @type {Schemas["SessionPage"] | null} */
  const answer = asked.answer;
  return html`<${RequestState} ...${asked} />
    ${answer && !answer.total && html`<p>No conversation was stored yet.</p>`}
    ${
      answer &&
      answer.total > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Session</th><th>User</th><th>Messages</th><th>Last message</th></tr></thead>
      <tbody>${answer.sessions.map(
        (each) => html`<tr key=${each.session_id}><td><a href=${address("agents", { show: "conversations", session: each.session_id })}><bdi>${each.title ?? each.session_id}</bdi></a></td>
          <td><bdi>${each.user ?? ""}</bdi></td><td>${each.messages.toLocaleString("en")}</td><td><${Time} at=${each.last_message_at ?? each.started_at} /></td></tr>`,
      )}</tbody></table></div>
      ${answer.total > shown && shown < 1000 && html`<p><button type="button" onClick=${() => setShown(Math.min(1000, shown + AT_ONCE))}>Show more of ${answer.total.toLocaleString("en")}</button></p>`}`
    }`;
}

/** @param {{ agent: string, session: string }} props */
function Turns({ agent, session }) {
  const wanted = route.value.query.get("message");
  const [shown, setShown] = useState(AT_ONCE);
  const path = `sessions/${encodeURIComponent(agent)}/${encodeURIComponent(session)}`;
  const asked = useRequest(
    (signal) => Promise.all([call("GET", path, { signal }), call("GET", `${path}/messages?limit=${shown}`, { signal })]),
    [path, shown],
  );
  /** @type {[Schemas["SessionRecord"], Schemas["MessageRecord"][]] | null} */
  const answer = asked.answer;
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => place.current?.scrollIntoView({ block: "center" }), [answer, wanted]);
  return html`<p><a href=${address("agents", { show: "conversations" })}>All conversations</a></p>
    <${RequestState} ...${asked} />
    ${
      answer &&
      html`<h2><bdi>${answer[0].title ?? session}</bdi></h2>
      <p class="faint">${counted(answer[0].messages, "message", "messages")}${answer[0].user ? html` with <bdi>${answer[0].user}</bdi>` : ""}</p>
      ${answer[1].map(
        (each) => html`<article key=${each.id} ref=${each.id === wanted ? place : undefined} class=${`turn ${each.role} ${each.id === wanted ? "wanted" : ""}`}>
          <div class="faint"><bdi>${each.name ?? each.role}</bdi> · <${Time} at=${each.created_at} /></div><${StoredText} text=${each.content} /></article>`,
      )}
      ${answer[0].messages > shown && shown < 1000 && html`<p><button type="button" onClick=${() => setShown(Math.min(1000, shown + AT_ONCE))}>Show more</button></p>`}`
    }`;
}
