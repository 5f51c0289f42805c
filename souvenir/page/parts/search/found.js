// A search of what a namespace has: its memories and, if it is an agent, its messages, in one list.
import { ApiError, call } from "../../api.js";
import { namespace, ownPrefixes, role } from "../../state.js";
import { filtersOf } from "../filters.js";

/** @import { Schemas } from "../../api.js" */

/** What can be searched, by its name in the address. @type {Record<string, string>} */
export const KINDS = { "": "Everything", memory: "Memories", message: "Messages" };

/** The most messages that a search returns, unless the service is set up otherwise. */
const MOST_MESSAGES = 20;
const LEVELS = { strong: 2, weak: 1, none: 0 };

/**
 * @typedef {Schemas["ExplainedHit"] | Schemas["SearchHit"]} MemoryHit
 * @typedef {Schemas["ExplainedMessage"] | Schemas["FoundMessage"]} MessageHit
 * @typedef {object} Found
 * @property {"memory" | "message"} kind
 * @property {string} id
 * @property {string} text
 * @property {string} at
 * @property {number} score
 * @property {MemoryHit | MessageHit} hit As the service answered it.
 * @property {Schemas["Explanation"] | null} explanation For an admin key.
 * @property {string[]} phrases The words of the question that name a time.
 *
 * @typedef {object} Answer
 * @property {string} question
 * @property {Found[]} found Most probable first.
 * @property {"strong" | "weak" | "none"} evidence
 * @property {string[]} degraded Parts of the search that could not run.
 * @property {[string, string][]} repairs Words of the question that are stored nowhere, with the ones searched instead.
 * @property {boolean} more Whether there may be more memories.
 * @property {boolean} withMessages Whether messages were searched too.
 * @property {unknown[]} raw
 */

/**
 * The requests of a search. Messages have no source, tags or archive state: with such a filter, only memories are searched.
 * @param {URLSearchParams} query The address.
 * @param {number} count
 * @returns {{ memories: Record<string, unknown> | null, messages: Record<string, unknown> | null }} Their bodies.
 */
export function requestsOf(query, count) {
  const question = query.get("q") ?? "";
  const kind = query.get("kind") ?? "";
  const filters = filtersOf(query);
  const { since, until, ...ofMemories } = filters;
  const readsMessages = !ownPrefixes.value && !Object.keys(ofMemories).length;
  return {
    memories: kind === "message" ? null : { query: question, k: count, ...filters },
    messages:
      kind === "memory" || !readsMessages
        ? null
        : { query: question, limit: Math.min(count, MOST_MESSAGES), ...(since ? { since } : {}), ...(until ? { until } : {}) },
  };
}

const agentPath = () => `agents/${encodeURIComponent(namespace())}/search`;

/**
 * A search as one request for a program, without the explanations.
 * @param {URLSearchParams} query The address.
 * @param {Answer} answer
 * @param {number} count
 * @returns {[path: string, body: unknown]}
 */
export function commandOf(query, answer, count) {
  const { memories, messages } = requestsOf(query, count);
  if (memories && !(messages && answer.withMessages)) return ["search", memories];
  return [agentPath(), memories ? messages : { kinds: ["message"], ...messages }];
}

/**
 * @param {URLSearchParams} query The address.
 * @param {number} count
 * @param {AbortSignal} signal
 * @returns {Promise<Answer>}
 */
export async function search(query, count, signal) {
  const { memories, messages } = requestsOf(query, count);
  const answers = await Promise.all([memories && memoriesFound(memories, signal), messages && messagesFound(messages, signal)]);
  const parts = answers.filter((answer) => answer !== null);
  const found = parts.flatMap((part) => part.found).sort((one, other) => other.score - one.score);
  const [best] = parts.sort((one, other) => LEVELS[other.evidence] - LEVELS[one.evidence]);
  return {
    question: query.get("q") ?? "",
    found,
    evidence: best?.evidence ?? "none",
    degraded: [...new Set(parts.flatMap(({ degraded }) => degraded))],
    repairs: [...new Map(parts.flatMap(({ repairs }) => repairs))],
    more: (answers[0]?.found.length ?? 0) >= count,
    withMessages: Boolean(answers[1]),
    raw: parts.map(({ raw }) => raw),
  };
}

/** @typedef {{ found: Found[], evidence: "strong" | "weak" | "none", degraded: string[], repairs: [string, string][], raw: unknown }} Part */

/**
 * @param {Record<string, unknown>} body
 * @param {AbortSignal} signal
 * @returns {Promise<Part>}
 */
async function memoriesFound(body, signal) {
  const explained = role.value === "admin";
  /** @type {Schemas["ExplainResponse"] | Schemas["SearchResponse"]} */
  const answer = await call("POST", explained ? "search/explain" : "search", { body, signal });
  const explain = "explain" in answer ? answer.explain : null;
  const phrases = explain?.time?.phrases ?? [];
  return {
    found: answer.results.map((hit) => ({
      kind: "memory",
      id: String(hit.id),
      text: hit.text,
      at: hit.document_at ?? hit.created_at,
      score: hit.score ?? 0,
      hit,
      explanation: "explanation" in hit ? /** @type {Schemas["Explanation"]} */ (hit.explanation) : null,
      phrases,
    })),
    evidence: answer.evidence,
    degraded: answer.degraded,
    repairs: Object.entries(explain?.repairs ?? {}),
    raw: answer,
  };
}

/**
 * @param {Record<string, unknown>} body
 * @param {AbortSignal} signal
 * @returns {Promise<Part | null>} Null if the namespace is no agent, and so has no messages.
 */
async function messagesFound(body, signal) {
  const agent = namespace();
  if (!(await isAgent(agent, signal))) return null;
  try {
    return await agentMessages(agent, body, signal);
  } catch (failed) {
    // The agent's access levels keep its messages from this key.
    if (failed instanceof ApiError && failed.status === 403) return null;
    throw failed;
  }
}

/**
 * @param {string} agent
 * @param {Record<string, unknown>} body
 * @param {AbortSignal} signal
 * @returns {Promise<Part>}
 */
async function agentMessages(agent, body, signal) {
  if (role.value === "admin") {
    /** @type {Schemas["ExplainMessagesResponse"]} */
    const answer = await call("POST", "messages/search/explain", { body: { agent_name: agent, ...body }, signal });
    const phrases = answer.time?.phrases ?? [];
    return {
      found: answer.results.map((hit) => messageFound(hit, hit.explanation, phrases)),
      evidence: answer.evidence,
      degraded: answer.degraded,
      repairs: Object.entries(answer.repairs),
      raw: answer,
    };
  }
  /** @type {Schemas["AgentSearchResponse"]} */
  const answer = await call("POST", agentPath(), { body: { kinds: ["message"], ...body }, signal });
  const messages = answer.results.map(({ message }) => message).filter((message) => message !== null);
  return {
    found: messages.map((hit) => messageFound(hit, null, [])),
    evidence: answer.evidence,
    degraded: answer.degraded,
    repairs: [],
    raw: answer,
  };
}

/**
 * @param {MessageHit} hit
 * @param {Schemas["Explanation"] | null} explanation
 * @param {string[]} phrases
 * @returns {Found}
 */
const messageFound = (hit, explanation, phrases) => ({
  kind: "message",
  id: hit.id,
  text: hit.content,
  at: hit.created_at,
  score: hit.score,
  hit,
  explanation,
  phrases,
});

/**
 * @param {string} name
 * @param {AbortSignal} signal
 */
export async function isAgent(name, signal) {
  /** @type {Schemas["AgentPage"]} */
  const page = await call("GET", `agents?limit=1&name_prefix=${encodeURIComponent(name)}`, { signal });
  // In the order of their names, a name is the first of those that begin with it.
  return page.agents[0]?.name === name;
}
