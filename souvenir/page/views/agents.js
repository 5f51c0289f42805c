import { call } from "../api.js";
import { Blocks } from "../parts/agents/blocks.js";
import { ContextPreview } from "../parts/agents/context.js";
import { AgentList, NoAgent } from "../parts/agents/list.js";
import { Preferences } from "../parts/agents/preferences.js";
import { Conversations } from "../parts/agents/sessions.js";
import { counted } from "../parts/figures.js";
import { html } from "../parts/html.js";
import { RequestState, useRequest } from "../parts/request.js";
import { address, ownNamespace, route } from "../state.js";

/** @import { Schemas } from "../api.js" */

/** @type {Record<string, { name: string, show: (agent: string) => unknown }>} */
const TABS = {
  context: { name: "Context", show: (agent) => html`<${ContextPreview} agent=${agent} />` },
  blocks: { name: "Blocks", show: (agent) => html`<${Blocks} agent=${agent} />` },
  preferences: { name: "Preferences", show: (agent) => html`<${Preferences} agent=${agent} />` },
  conversations: { name: "Conversations", show: (agent) => html`<${Conversations} agent=${agent} />` },
};

export function Agents() {
  const agent = route.value.query.get("in") ?? ownNamespace.value;
  return html`<main id="main" tabindex="-1" class="scroll">${agent ? html`<${Agent} agent=${agent} />` : html`<h1>Agents</h1><${AgentList} view="agents" />`}</main>`;
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
        ? html`<${NoAgent} />${!ownNamespace.value && html`<p>Or <a href="#/agents">choose another agent</a>.</p>`}`
        : html`<ul class="tabs">${Object.entries(TABS).map(
            ([id, { name }]) => html`<li key=${id}><a href=${address("agents", { show: id })} aria-current=${id === shown ? "page" : undefined}>${name}</a></li>`,
          )}</ul>${(TABS[shown] ?? TABS.context).show(agent)}`
    }`;
}
