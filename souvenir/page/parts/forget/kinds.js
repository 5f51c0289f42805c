// What can be erased, and its addresses in the view that erases.
import { address, namespace } from "../../state.js";

/** @import { Schemas } from "../../api.js" */
/** @import { Job } from "../job-progress.js" */
/** @typedef {Schemas["EraseSelector"]} Selector */

/**
 * By the names in the selector of POST /erase: a label, what the field asks for, and what the thing is called.
 * @type {Record<string, { label: string, asks?: string, thing: string }>}
 */
export const KINDS = {
  search: { label: "Results of a search", thing: "the chosen results" },
  source: { label: "Memories of a source", asks: "Source, such as notes/travel", thing: "the source" },
  memory_id: { label: "One memory", asks: "Id of the memory", thing: "the memory" },
  user: { label: "A user", asks: "Name of the user", thing: "the user" },
  session_id: { label: "A session", asks: "Id of the session", thing: "the session" },
  message_id: { label: "One message", asks: "Id of the message", thing: "the message" },
  block: { label: "A memory block", asks: "Label of the block", thing: "the block" },
  agent: { label: "Everything of this agent", thing: "the agent" },
};

/**
 * The address at which something of the shown namespace can be erased, for links from other views.
 * @param {"memory_id" | "user" | "session_id" | "message_id" | "source" | "block"} kind
 * @param {string | number} value Its id, name or path.
 */
export const forgetAddress = (kind, value) => address("forget", { kind, value });

/**
 * Of an agent: what is not learned from a user or session, and so stays when that is forgotten.
 * @typedef {{ memories: number, blocks: number }} Staying
 */

/**
 * What is kept for this tab of an erasure, because the service keeps only numbers.
 * @typedef {{ kind: string, value: string, selector: Selector, question?: string, stays?: Staying, job?: Job }} Kept
 */

/** @typedef {{ memories: number[], messages: string[] }} Chosen Ids of search results. */

/**
 * The chosen results in an address.
 * @param {URLSearchParams} query
 * @returns {Chosen}
 */
export const chosenOf = (query) => ({
  memories: listed(query.get("memories")).map(Number).filter(Number.isSafeInteger),
  messages: listed(query.get("messages")),
});

/** @param {string | null} text */
const listed = (text) => (text ? text.split(",") : []);

/**
 * The selector of the erasure that an address describes; null while nothing is chosen.
 * @param {URLSearchParams} query
 * @returns {Selector | null}
 */
export function selectorOf(query) {
  const kind = query.get("kind") ?? "search";
  const value = query.get("value") ?? "";
  const agent_name = namespace();
  if (kind === "agent") return { agent_name };
  if (kind !== "search") return value ? { agent_name, [kind]: kind === "memory_id" ? Number(value) : value } : null;
  const { memories, messages } = chosenOf(query);
  if (!memories.length && !messages.length) return null;
  return { agent_name, ...(memories.length ? { memory_ids: memories } : {}), ...(messages.length ? { message_ids: messages } : {}) };
}
