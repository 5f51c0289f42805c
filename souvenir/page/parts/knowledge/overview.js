import { call } from "../../api.js";
import { address, namespace } from "../../state.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const TOPICS = 10;

/**
 * What is worth reading about an agent: sentences to act on, people and things, and topics.
 * @param {{ agent: string }} props `agent` is encoded for a path.
 */
export function Overview({ agent }) {
  const asked = useRequest(
    (signal) => Promise.all([call("GET", `agents/${agent}/summary`, { signal }), call("GET", `agents/${agent}/topics?limit=${TOPICS}`, { signal })]),
    [agent],
  );
  /** @type {[Schemas["SummaryResponse"], Schemas["TopicPage"]] | null} */
  const answer = asked.answer;
  if (!answer) return html`<${RequestState} ...${asked} />`;
  const [{ insights, top_concepts, statistics }, { topics }] = answer;
  return html`<${RequestState} ...${asked} />
    ${statistics.waiting > 0 && html`<p class="faint">${statistics.waiting.toLocaleString("en")} texts are not read yet.</p>`}
    <section aria-labelledby="to-act-on"><h2 id="to-act-on">To act on</h2>
      ${
        insights.length
          ? html`<ul>${insights.map((each) => html`<li key=${each.text}><span dir="auto">${each.text}</span> ${each.sources.map((source, place) => html`<${Source} key=${source.id} source=${source} number=${place + 1} />`)}</li>`)}</ul>`
          : html`<p>Nothing: no promise is due, and no change or contradiction was found.</p>`
      }</section>
    <section aria-labelledby="people-and-things"><h2 id="people-and-things">People and things</h2>
      ${
        top_concepts.length
          ? html`<ul>${top_concepts.map(
              (each) => html`<li key=${each.id}><a href=${address("knowledge", { concept: each.id })}><bdi>${each.name}</bdi></a> <span class="faint">${each.kind}</span> <span dir="auto">${each.description ?? each.role}</span></li>`,
            )}</ul>`
          : html`<p>None yet. Names and things that the stored texts mention appear here by themselves.</p>`
      }</section>
    <section aria-labelledby="subjects"><h2 id="subjects">Topics</h2>
      ${
        topics.length
          ? html`<ul>${topics.map(
              (each) => html`<li key=${each.id}><a href=${address("knowledge", { topic: each.id })}><bdi>${each.name}</bdi></a> <span class="faint"><${Time} at=${each.last_at} /></span> <span dir="auto">${each.summary}</span></li>`,
            )}</ul>`
          : html`<p>None yet. Messages about the same things become a topic.</p>`
      }</section>`;
}

/** @param {{ source: Schemas["InsightSource"], number: number }} props */
function Source({ source, number }) {
  const href =
    source.kind === "memory"
      ? address("memories", { memory: source.id })
      : address("agents", { in: namespace(), show: "conversations", session: source.session_id, message: source.id });
  return html`<a class="faint" href=${href} aria-label=${`Source ${number}`}>[${number}]</a> `;
}
