import { call } from "../api.js";
import { AgentList } from "../parts/agents/list.js";
import { html } from "../parts/html.js";
import { Concept } from "../parts/knowledge/concept.js";
import { Entities } from "../parts/knowledge/entities.js";
import { Find } from "../parts/knowledge/find.js";
import { ConceptGraph } from "../parts/knowledge/graph.js";
import { Overview } from "../parts/knowledge/overview.js";
import { Topic, Topics } from "../parts/knowledge/topics.js";
import { RequestState, useRequest } from "../parts/request.js";
import { Time } from "../parts/text.js";
import { address, go, ownNamespace, route } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";

/** @import { Schemas } from "../api.js" */

const AT_ONCE = 100;

/** @type {Record<string, { name: string, show: (agent: string) => unknown }>} */
const TABS = {
  overview: { name: "Overview", show: (agent) => html`<${Overview} agent=${agent} />` },
  concepts: { name: "Concepts", show: (agent) => html`<${Concepts} agent=${agent} />` },
  graph: { name: "Graph", show: (agent) => html`<${ConceptGraph} agent=${agent} />` },
  topics: { name: "Topics", show: (agent) => html`<${Topics} agent=${agent} />` },
  entities: { name: "Entities", show: () => html`<${Entities} />` },
};

/** What the texts of a namespace are about: concepts, topics and insights. */
export function Knowledge() {
  const { query } = route.value;
  const shown = query.get("show") ?? (query.has("concept") ? "concepts" : query.has("topic") ? "topics" : "overview");
  const chosen = query.get("in") ?? ownNamespace.value;
  if (!chosen)
    return html`<main id="main" tabindex="-1" class="scroll"><h1>Knowledge</h1><p>Choose an agent to see what its texts are about.</p><${AgentList} view="knowledge" />
      <p><a href=${address("knowledge", { in: "default", show: "entities" })}>Entities that clients of MCP stored in the namespace default</a></p></main>`;
  const agent = encodeURIComponent(chosen);
  const concept = query.get("concept");
  const topic = query.get("topic");
  return html`<main id="main" tabindex="-1" class="scroll">
    <h1>Knowledge of <bdi>${chosen}</bdi></h1>
    <ul class="tabs">${Object.entries(TABS).map(
      ([id, { name }]) => html`<li key=${id}><a href=${address("knowledge", { show: id })} aria-current=${id === shown ? "page" : undefined}>${name}</a></li>`,
    )}</ul>
    ${
      concept
        ? html`<${Concept} agent=${agent} id=${concept} />`
        : topic
          ? html`<${Topic} agent=${agent} id=${topic} />`
          : (TABS[shown] ?? TABS.overview).show(agent)
    }
  </main>`;
}

/** @param {{ agent: string }} props */
function Concepts({ agent }) {
  const [limit, setLimit] = useState(AT_ONCE);
  const asked = useRequest((signal) => call("GET", `agents/${agent}/concepts?limit=${limit}`, { signal }), [agent, limit]);
  /** @type {Schemas["ConceptPage"] | null} */
  const answer = asked.answer;
  return html`<${Find} agent=${agent} name="name" label="Name of a concept" onFound=${(/** @type {Schemas["ConceptDetailsRecord"]} */ { id }) => go("knowledge", { concept: id })} />
    <${RequestState} error=${asked.error} slow=${asked.slow && !answer} />
    ${answer && !answer.total && html`<p>No concept yet. Names, things and dates that the stored texts mention appear here by themselves.</p>`}
    ${
      answer &&
      answer.total > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Concept</th><th>Description</th><th>Kind</th><th>Mentions</th><th>Last mention</th></tr></thead>
        <tbody>${answer.concepts.map(
          (each) => html`<tr key=${each.id}><td><a href=${address("knowledge", { concept: each.id })}><bdi>${each.name}</bdi></a></td><td dir="auto">${each.description ?? each.role}</td><td>${each.kind}</td>
          <td>${each.mentions.toLocaleString("en")}</td><td>${each.last_at && html`<${Time} at=${each.last_at} />`}</td></tr>`,
        )}</tbody></table></div>
      ${answer.total > limit && limit < 1000 && html`<p><button type="button" onClick=${() => setLimit(Math.min(1000, limit + AT_ONCE))}>Show more of ${answer.total.toLocaleString("en")}</button></p>`}`
    }`;
}
