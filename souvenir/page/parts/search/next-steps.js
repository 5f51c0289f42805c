import { call } from "../../api.js";
import { address, namespace, ownNamespace, role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { html } from "../html.js";
import { useRequest } from "../request.js";
import { Samples } from "./samples.js";
import { addSnippet, learningSnippet, mcpSnippet, Snippet } from "../snippets.js";

/** @import { Schemas } from "../../api.js" */

const LISTED = 10;

/** Ways to give the service something to remember, each with a snippet for this address. @type {Record<string, { name: string, says: string, code: () => string }>} */
const WAYS = {
  http: { name: "Any language", says: "Send a text over HTTP:", code: addSnippet },
  python: { name: "Python", says: "Wrap the calls of your program, and they are remembered:", code: learningSnippet },
  mcp: { name: "An agent over MCP", says: "Add the service to Claude Code; other clients take the same address:", code: mcpSnippet },
};

/** Before a question is asked: how to store something, and samples for an empty namespace. */
export function NextSteps() {
  const [way, setWay] = useState("http");
  const { says, code } = WAYS[way];
  return html`<div class="next-steps"><p>Ask a question above: in your own words, not only in those of the text.</p>
    <${Agents} />
    <${Samples} />
    ${
      role.value !== "read-only" &&
      html`<h2>To remember something</h2>
      <div class="choice" role="group" aria-label="Ways to remember something">${Object.entries(WAYS).map(
        ([id, { name }]) => html`<button key=${id} type="button" aria-pressed=${id === way} onClick=${() => setWay(id)}>${name}</button>`,
      )}</div>
      <p>${says}</p><${Snippet} text=${code()} />`
    }</div>`;
}

/** Where else something is stored, for who begins at the namespace `default`. */
function Agents() {
  const chosen = ownNamespace.value || namespace() !== "default";
  const asked = useRequest(chosen ? null : (signal) => call("GET", `agents?limit=${LISTED}`, { signal }), []);
  /** @type {Schemas["AgentPage"] | null} */
  const answer = asked.answer;
  if (!answer?.total) return null;
  return html`<p>This is the namespace default. Agents have their own: ${answer.agents.map(
    ({ name }) => html`<a key=${name} href=${address("search", { in: name })}><bdi>${name}</bdi></a> `,
  )}${answer.total > LISTED && html`<a href=${address("agents")}>and ${answer.total - LISTED} more</a>`}</p>`;
}
