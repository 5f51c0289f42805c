// Commands and code for this address. A key is taken from the variable SOUVENIR_API_KEY, so that it is never in them.
import { key, namespace, ownPrefixes } from "../state.js";
import { Copy, curl } from "./copy.js";
import { html } from "./html.js";

/** @param {{ text: string }} props */
export const Snippet = ({ text }) => html`<pre tabindex="0">${text}</pre><p><${Copy} label="Copy" text=${() => text} /></p>`;

/** Store a memory over HTTP. */
export function addSnippet() {
  const source = ownPrefixes.value ? `${ownPrefixes.value[0].replace(/\/?\*$/, "")}/page` : "notes";
  return curl("memory/add", { text: "Biscuit is a beagle.", source }, Boolean(key.value));
}

/** Remember the calls of a program. The client reads the key from the variable by itself. */
export function learningSnippet() {
  const agent = namespace() === "default" ? "my_agent" : namespace();
  return `from souvenir_client import learning

with learning(agent=${JSON.stringify(agent)}, server_url="${location.origin}"):
    ...  # calls of the OpenAI and Anthropic SDKs are remembered`;
}

/** Add the service to a client of MCP. */
export function mcpSnippet() {
  const name = encodeURIComponent(namespace()).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
  const sent = key.value ? ' --header "X-API-Key: $SOUVENIR_API_KEY"' : "";
  return `claude mcp add --transport http souvenir ${location.origin}/mcp${namespace() === "default" ? "" : `/${name}`}${sent}`;
}
