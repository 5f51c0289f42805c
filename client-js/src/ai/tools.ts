/** Tools for Vercel's AI SDK, by which a model searches and changes the memories of an agent. */

import { jsonSchema, tool, type JSONSchema7, type Tool } from "ai";
import type { Souvenir } from "../client.js";

/** The source of memories that a model adds. */
const SOURCE = "ai-sdk";

/** A memory as a model sees it. */
export interface FoundMemory {
  memory_id: number;
  text: string;
  source: string;
  created_at: string;
}

export interface SearchAnswer {
  results: FoundMemory[];
  /** Whether the subject of the query is mentioned: `strong`, `weak` or `none`. */
  evidence: string;
}

/** A type and no interface, so that it is a ToolSet of the AI SDK. */
export type SouvenirTools = {
  search_memory: Tool<{ query: string; limit?: number }, SearchAnswer>;
  add_memory: Tool<{ text: string }, { memory_id: number | null }>;
  update_memory: Tool<{ memory_id: number; text: string }, { memory_id: number }>;
  delete_memory: Tool<{ memory_id: number }, { memory_id: number }>;
};

/**
 * The tools of an agent, for `generateText`, `streamText` and agents, with the names of the MCP tools.
 *
 *     await generateText({ model, tools: souvenirTools(new Souvenir(), { agent: "my_agent" }), stopWhen: stepCountIs(5), prompt });
 *
 * A failed call is thrown, and the AI SDK shows its message to the model.
 */
export function souvenirTools(souvenir: Souvenir, { agent }: { agent: string }): SouvenirTools {
  const { memories } = souvenir.inNamespace(agent);
  return {
    search_memory: tool({
      description:
        "Find stored memories relevant to a question, by meaning and by words, best first. Use it before answering " +
        "anything that may depend on what the user said, prefers or decided earlier. Ask in plain words.",
      inputSchema: object<{ query: string; limit?: number }>({
        query: { type: "string", description: "The question, in plain words." },
        limit: { type: "integer", minimum: 1, maximum: 50, description: "Maximum number of results (10)." },
      }, ["query"]),
      execute: async ({ query, limit = 10 }, { abortSignal }): Promise<SearchAnswer> => {
        const { results, evidence } = await memories.search({ query, k: limit }, { signal: abortSignal });
        const found = results.map(({ id, text, source, created_at }) => ({ memory_id: id, text, source, created_at }));
        return { results: found, evidence };
      },
    }),
    add_memory: tool({
      description:
        "Remember something for good: a fact about a person, a preference, a decision with its reason, how something " +
        "works; one self-contained text for each topic. Do not store what only this conversation needs, or secrets. To " +
        "correct what is stored, use update_memory.",
      inputSchema: object<{ text: string }>({ text: { type: "string", description: "The text to remember." } }, ["text"]),
      execute: async ({ text }, { abortSignal }) => {
        const added = await memories.add({ text, source: SOURCE }, { signal: abortSignal });
        return { memory_id: added.id ?? null };
      },
    }),
    update_memory: tool({
      description:
        "Replace the text of a stored memory when it is wrong or out of date. Find its memory_id with search_memory first.",
      inputSchema: object<{ memory_id: number; text: string }>({
        memory_id: { type: "integer", description: "The id of the memory." },
        text: { type: "string", description: "Its new text." },
      }, ["memory_id", "text"]),
      execute: async ({ memory_id, text }, { abortSignal }) => {
        await memories.update(memory_id, { text }, { signal: abortSignal });
        return { memory_id };
      },
    }),
    delete_memory: tool({
      description:
        "Forget one memory for good. Use it when the user asks to forget something; if a memory is merely out of date, " +
        "update_memory is better.",
      inputSchema: object<{ memory_id: number }>({
        memory_id: { type: "integer", description: "The id of the memory." },
      }, ["memory_id"]),
      execute: async ({ memory_id }, { abortSignal }) => {
        await memories.delete(memory_id, {}, { signal: abortSignal });
        return { memory_id };
      },
    }),
  };
}

/** The schema of an input: an object with these properties and no others. */
function object<Input>(properties: Record<string, JSONSchema7>, required: string[]) {
  return jsonSchema<Input>({ type: "object", properties, required, additionalProperties: false });
}
