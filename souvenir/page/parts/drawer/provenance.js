import { call } from "../../api.js";
import { address, namespace } from "../../state.js";
import { html } from "../html.js";
import { Quote } from "../quote.js";
import { RequestState, useRequest } from "../request.js";

/** @import { Schemas } from "../../api.js" */
/** @import { Memory } from "../changes.js" */

/** Who wrote a memory, with which program, and the words of a conversation that it was learned from. @param {{ memory: Memory }} props */
export function Provenance({ memory }) {
  const names = [memory.author, ...(Array.isArray(memory.contributors) ? memory.contributors : [])].filter(Boolean);
  const asked = useRequest((signal) => call("GET", `memory/${memory.id}/provenance`, { signal }), [memory.id, memory.updated_at]);
  /** @type {Schemas["ProvenanceResponse"] | null} */
  const answer = asked.answer?.memory_id === memory.id ? asked.answer : null;
  return html`<h2>Origin</h2>
    <div>${memory.origin_class}${memory.origin_client ? html` · <bdi>${memory.origin_client}</bdi>` : null}
      ${names.map((name) => html` · <bdi>${name}</bdi>`)}</div>
    <${RequestState} ...${asked} />
    ${answer && (answer.extraction || answer.sessions.length > 0 || answer.users.length > 0) && html`<${Learned} found=${answer} />`}`;
}

/** @param {{ found: Schemas["ProvenanceResponse"] }} props */
function Learned({ found }) {
  const { extraction, quote, sessions, users } = found;
  return html`<h2>Learned from</h2>
    ${quote && html`<${Quote} quote=${quote} />`}
    ${quote && !quote.words && html`<p class="faint">The message was edited since, so the words are not marked.</p>`}
    ${!quote && html`<p class="faint">${extraction?.kept ? "No words of the conversation are known for this memory." : "The words are not known any more: the transcript is not kept, and the turn was not stored as a message that you may read."}</p>`}
    ${sessions.length > 0 && html`<p>${sessions.length === 1 ? "Session" : "Sessions"} ${sessions.map((name) => html`<a key=${name} href=${address("agents", { in: namespace(), show: "conversations", session: name })}><bdi>${name}</bdi></a> `)}</p>`}
    ${users.length > 0 && html`<p>${users.length === 1 ? "User" : "Users"} ${users.map((name) => html`<bdi key=${name}>${name}</bdi> `)}</p>`}
    ${extraction?.kept && html`<p><a href=${address("learning", { job: extraction.job_id })}>Its extraction</a></p>`}`;
}
