import { key } from "../../state.js";
import { Copy, curl } from "../copy.js";
import { html } from "../html.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {{ query: string, max_tokens: number } & Record<string, unknown>} Body */

/**
 * The context as text, as JSON, and as the call that gets it. A key is taken from the environment.
 * @param {{ agent: string, path: string, body: Body, answer: Schemas["ContextResponse"] }} props
 */
export const ContextCopies = ({ agent, path, body, answer }) =>
  html`<p class="actions"><${Copy} label="Copy the text" text=${() => answer.text} />
    <${Copy} label="Copy as JSON" text=${() => JSON.stringify(answer, null, 2)} />
    <${Copy} label="Copy as Python" text=${() => python(agent, body, Boolean(key.value))} />
    <${Copy} label="Copy as TypeScript" text=${() => typescript(path, body, Boolean(key.value))} />
    <${Copy} label="Copy as curl" text=${() => curl(path, body, Boolean(key.value))} /></p>`;

/**
 * @param {string} agent
 * @param {Body} body Texts and numbers, which are written alike in Python and JSON.
 * @param {boolean} needsKey
 */
function python(agent, body, needsKey) {
  const fields = Object.entries(body).map(([name, value]) => `        ${name}=${JSON.stringify(value)},\n`);
  return `${needsKey ? "import os\n\n" : ""}from souvenir_client import Souvenir

with Souvenir(${JSON.stringify(location.origin)}${needsKey ? ', api_key=os.environ["SOUVENIR_API_KEY"]' : ""}) as souvenir:
    context = souvenir.context.build(
        ${JSON.stringify(agent)},
${fields.join("")}    )
print(context.text)
`;
}

/**
 * @param {string} path
 * @param {Body} body
 * @param {boolean} needsKey
 */
function typescript(path, body, needsKey) {
  const header = needsKey ? ', "X-API-Key": process.env.SOUVENIR_API_KEY ?? ""' : "";
  return `const response = await fetch(${JSON.stringify(`${location.origin}/${path}`)}, {
  method: "POST",
  headers: { "Content-Type": "application/json"${header} },
  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),
});
if (!response.ok) throw new Error(await response.text());
const context: { text: string; tokens: number; evidence: string } = await response.json();
console.log(context.text);
`;
}
