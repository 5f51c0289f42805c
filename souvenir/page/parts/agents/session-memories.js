import { ApiError, call } from "../../api.js";
import { address } from "../../state.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { Problem } from "../problem.js";
import { useRequest } from "../request.js";

/** @import { Schemas } from "../../api.js" */

const LISTED = 50;

/**
 * The memories that were learned from a session.
 * @param {{ agent: string, path: string }} props
 */
export function SessionMemories({ agent, path }) {
  const { answer, error } = useRequest((signal) => call("GET", `${path}/memories?limit=${LISTED}`, { signal }), [path]);
  /** @type {Schemas["MemoryPage"] | null} */
  const found = answer;
  // A key without access to memories is shown the conversation only.
  if (error && !(error instanceof ApiError && error.status === 403)) return html`<${Problem} error=${error} />`;
  if (!found?.total) return null;
  return html`<details><summary>${counted(found.total, "memory", "memories")} learned from this conversation</summary>
    <ul>${found.memories.map(
      ({ id, text, archived }) => html`<li key=${id}><a href=${address("memories", { in: agent, memory: id })}>Memory ${id}</a> <bdi>${text}</bdi>${archived ? html` <span class="faint">archived</span>` : ""}</li>`,
    )}</ul></details>`;
}
