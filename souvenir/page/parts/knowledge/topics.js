import { call } from "../../api.js";
import { address, namespace } from "../../state.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { StoredText, Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const LISTED = 100;

/** @param {{ agent: string }} props `agent` is encoded for a path. */
export function Topics({ agent }) {
  const asked = useRequest((signal) => call("GET", `agents/${agent}/topics?limit=${LISTED}`, { signal }), [agent]);
  /** @type {Schemas["TopicPage"] | null} */
  const answer = asked.answer;
  return html`<${RequestState} ...${asked} />
    ${answer && !answer.total && html`<p>No topic yet. Messages about the same things become a topic.</p>`}
    ${
      answer &&
      answer.total > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Topic</th><th>Sessions</th><th>Messages</th><th>Last message</th></tr></thead>
        <tbody>${answer.topics.map(
          (each) => html`<tr key=${each.id}><td><a href=${address("knowledge", { show: "topics", topic: each.id })}><bdi>${each.name}</bdi></a></td>
          <td>${each.sessions.toLocaleString("en")}</td><td>${each.messages.toLocaleString("en")}</td><td><${Time} at=${each.last_at} /></td></tr>`,
        )}</tbody></table></div>`
    }`;
}

/**
 * A topic: its concepts, its sessions, and the messages that say most about it.
 * @param {{ agent: string, id: string }} props `agent` is encoded for a path.
 */
export function Topic({ agent, id }) {
  const asked = useRequest((signal) => call("GET", `agents/${agent}/topics/${encodeURIComponent(id)}`, { signal }), [agent, id]);
  /** @type {Schemas["TopicDetailsRecord"] | null} */
  const topic = asked.answer;
  if (!topic) return html`<${RequestState} ...${asked} />`;
  const conversation = { in: namespace(), show: "conversations" };
  return html`<section aria-label="Topic">
    <h2><bdi>${topic.name}</bdi></h2>
    <p class="faint">${counted(topic.sessions, "session", "sessions")} · ${counted(topic.messages, "message", "messages")}</p>
    ${topic.summary && html`<${StoredText} text=${topic.summary} />`}
    <p>${topic.terms.map(({ concept_id, name }) => html`<span key=${concept_id}><a href=${address("knowledge", { concept: concept_id })}><bdi>${name}</bdi></a> </span>`)}</p>
    <h2>Messages</h2>
    ${topic.in_messages.map(
      (each) => html`<div key=${each.message_id}><a class="faint" href=${address("agents", { ...conversation, session: each.session_id, message: each.message_id })}><${Time} at=${each.created_at} /></a><${StoredText} text=${each.content} /></div>`,
    )}
    <h2>Sessions</h2>
    <ul>${topic.in_sessions.map(
      (each) => html`<li key=${each.session_id}><a href=${address("agents", { ...conversation, session: each.session_id })}><bdi>${each.title ?? each.session_id}</bdi></a> <span class="faint">${counted(each.messages, "message", "messages")}${each.primary_topic ? "" : " · mostly about another topic"}</span></li>`,
    )}</ul>
  </section>`;
}
