import { call } from "../../api.js";
import { address } from "../../state.js";
import { html } from "../html.js";
import { RequestState, settled, useRequest } from "../request.js";
import { percent } from "../score.js";
import { Speaker, StoredText, Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const HITS = 20;

/**
 * A search over the messages of an agent, or of one session; each hit leads to its turn.
 * @param {{ agent: string, session: string | null, find: string, onFind: (text: string) => void }} props
 */
export function MessageSearch({ agent, session, find, onFind }) {
  const ask = async (/** @type {AbortSignal} */ signal) => {
    await settled(signal);
    const body = { agent_name: agent, query: find, limit: HITS, ...(session && { session_id: session }) };
    return call("POST", "messages/search", { body, signal });
  };
  const asked = useRequest(find.trim() ? ask : null, [agent, session, find]);
  /** @type {Schemas["FoundMessages"] | null} */
  const found = find.trim() ? asked.answer : null;
  return html`<div class="message-search"><label>Search ${session ? "this conversation" : "all conversations"} <input type="search" dir="auto" autocomplete="off" value=${find}
      onInput=${(/** @type {Event} */ event) => onFind(/** @type {HTMLInputElement} */ (event.target).value)} /></label>
    <${RequestState} error=${asked.error} slow=${asked.slow && !found} />
    ${found && !found.length && html`<p role="status">No message fits.</p>`}
    ${
      found &&
      found.length > 0 &&
      html`<ul class="found" aria-label="Found messages">${found.map(
        (each) => html`<li key=${each.id}><a href=${address("agents", { show: "conversations", session: each.session_id, message: each.id, find })}>${percent(each.score)} · <${Speaker} message=${each} /> · <${Time} at=${each.created_at} /></a>
          <${StoredText} text=${each.content} words=${find.split(/\s+/)} /></li>`,
      )}</ul>`
    }</div>`;
}
