import { address } from "../../state.js";
import { counted } from "../figures.js";
import { html } from "../html.js";

/** @import { Staying } from "./kinds.js" */

/**
 * What forgetting a user or a session leaves, and where to look for more of it.
 * @param {{ stays: Staying, name: string | null }} props `name` of the person, to search for.
 */
export function Stays({ stays, name }) {
  const memories = counted(stays.memories, "memory", "memories");
  const blocks = counted(stays.blocks, "block", "blocks");
  return html`<p>What stays: ${memories} and ${blocks} of this agent that were not learned from it, and its preferences.
    Look for more in <a href=${address("forget", { kind: "search", q: name })}>Forget by search</a> and in <a href=${address("agents", { show: "blocks" })}>the blocks</a>.</p>`;
}
