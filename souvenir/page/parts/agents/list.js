import { call } from "../../api.js";
import { address } from "../../state.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { learningSnippet, Snippet } from "../snippets.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const LISTED = 200;

/**
 * The agents, as links to a view of each.
 * @param {{ view: string }} props
 */
export function AgentList({ view }) {
  const asked = useRequest((signal) => call("GET", `agents?limit=${LISTED}`, { signal }), []);
  /** @type {Schemas["AgentPage"] | null} */
  const answer = asked.answer;
  return html`<${RequestState} ...${asked} />
    ${answer && !answer.total && html`<${NoAgent} />`}
    ${
      answer &&
      answer.total > 0 &&
      html`<p class="faint">${counted(answer.total, "agent", "agents")}${answer.total > LISTED ? `, of which the first ${LISTED}` : ""}</p>
      <div class="wide-table" tabindex="0"><table><thead><tr><th>Agent</th><th>Since</th></tr></thead>
        <tbody>${answer.agents.map(
          ({ name, created_at }) => html`<tr key=${name}><td><a href=${address(view, { in: name })}><bdi>${name}</bdi></a></td><td><${Time} at=${created_at} /></td></tr>`,
        )}</tbody></table></div>`
    }`;
}

export const NoAgent = () => html`<p>An agent appears with its first message or block. Wrap the calls of your program:</p><${Snippet} text=${learningSnippet()} />`;
