import { call } from "../api.js";
import { Blocks } from "../parts/agent-blocks.js";
import { ContextPreview } from "../parts/agent-context.js";
import { Conversations } from "../parts/agent-sessions.js";
import { Copy } from "../parts/copy.js";
import { counted } from "../parts/figures.js";
import { html } from "../parts/html.js";
import { RequestState, useRequest } from "../parts/request.js";
import { Time } from "../parts/text.js";
import { address, ownNamespace, route } from "../state.js";

/** @import { Schemas } from "../api.js" */

const LISTED = 200;

/** @type {Record<string, { name: string, show: (agent: string) => unknown }>} */
const TABS = {
  context: { name: "Context", show: (agent) => html`<${ContextPreview} agent=${agent} />` },
  blocks: { name: "Blocks", show: (agent) => html`<${Blocks} agent=${agent} />` },
  conversations: { name: "Conversations", show: (agent) => html`<${Conversations} agent=${agent} />` },
};

export function Agents() {
  const agent = route.value.query.get("in") ?? ownNamespace.value;
  return html`<main id="main" tabindex="-1" class="scroll">${agent ? html`<${Agent} agent=${agent} />` : html`<${AgentList} />`}</main>`;
}

function AgentList() {
  const asked = useRequest((signal) => call("GET", `agents?limit=${LISTED}`, { signal }), []);
  /** @type {Schemas["AgentPage"] | null} */
  const answer = asked.answer;
  return html`<h1>Agents</h1>
    <${RequestState} ...${asked} />
    ${answer && !answer.total && html`<${Empty} />`}
    ${
      answer &&
      answer.total > 0 &&
      html`<p class="faint">${counted(answer.total, "agent", "agents")}${answer.total > LISTED ? `, of which the first ${LISTED}` : ""}</p>
      <div class="wide-table" tabindex="0"><table><thead><tr><th>Agent</th><th>Since</th></tr></thead>
        <tbody>${answer.agents.map(
          ({ name, created_at }) => html`<tr key=${name}><td><a href=${address("agents", { in: name })}><bdi>${name}</bdi></a></td><td><${Time} at=${created_at} /></td></tr>`,
        )}</tbody></table></div>`
    }`;
}

/** @param {{ agent: string }} props */
function Agent({ agent }) {
  const shown = route.value.query.get("show") ?? "context";
  const asked = useRequest((signal) => call("GET", `agents/${encodeURIComponent(agent)}/stats`, { signal }), [agent]);
  /** @type {Schemas["AgentStatsResponse"] | null} */
  const stats = asked.answer;
  return html`${!ownNamespace.value && html`<a href="#/agents">All agents</a>`}
    <h1>Agent <bdi>${agent}</bdi></h1>
    <${RequestState} ...${asked} />
    ${
      stats &&
      html`<p class="faint">${[
        counted(stats.memories, "memory", "memories"),
        counted(stats.messages, "message", "messages"),
        counted(stats.sessions, "session", "sessions"),
        counted(stats.users, "user", "users"),
        counted(stats.blocks, "block", "blocks"),
      ].join(" · ")}</p>`
    }
    ${
      asked.error
        ? html`<${Empty} />`
        : html`<ul class="tabs">${Object.entries(TABS).map(
            ([id, { name }]) => html`<li key=${id}><a href=${address("agents", { show: id })} aria-current=${id === shown ? "page" : undefined}>${name}</a></li>`,
          )}</ul>${(TABS[shown] ?? TABS.context).show(agent)}`
    }`;
}

function Empty() {
  const code = `from souvenir_client import learning

with learning(agent="my_agent", server_url="${location.origin}"):
    ...  # calls of the OpenAI and Anthropic SDKs are remembered`;
  return html`<p>An agent appears with its first message or block. Wrap the calls of your program:</p>
    <pre tabindex="0">${code}</pre><p><${Copy} label="Copy" text=${() => code} /></p>`;
}
