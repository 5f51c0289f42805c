import { call } from "../../api.js";
import { go, namespace, route } from "../../state.js";
import { useEffect, useState } from "../../vendor/preact-hooks.js";
import { counted } from "../figures.js";
import { chosenOf } from "./kinds.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { isAgent } from "../search/found.js";
import { percent } from "../score.js";
import { StoredText, Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {{ memories: Schemas["ExplainResponse"]["results"], messages: Schemas["FoundMessage"][] }} Found */

const MEMORIES = 50;
const MESSAGES = 20;
/** So many can be erased at once. */
const MOST = 1000;
/** The probability from which results are offered all at once. */
const LIKELY = 0.1;

/** Search memories, also archived ones, and messages of the agent, and choose what to erase. Choices stay over several searches. */
export function ForgetSearch() {
  const { query } = route.value;
  const question = query.get("q") ?? "";
  const source = query.get("source") ?? "";
  const chosen = chosenOf(query);
  const asked = useRequest(question ? (signal) => found(question, source, signal) : null, [question, source]);
  const [draft, setDraft] = useState({ q: question, source });
  useEffect(() => setDraft({ q: question, source }), [question, source]);
  const answer = question ? asked.answer : null;
  /**
   * @param {Record<string, string | null>} change
   * @param {boolean} [replace]
   */
  const change = (change, replace = false) =>
    go("forget", { kind: "search", q: question, source, memories: query.get("memories"), messages: query.get("messages"), ...change }, { replace });
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    change({ q: draft.q.trim(), source: draft.source.trim() });
  };
  /**
   * @template {number | string} Id
   * @param {"memories" | "messages"} of
   * @param {Id[]} before
   * @param {Id[]} ids
   * @param {boolean} on
   */
  const choose = (of, before, ids, on) => {
    const after = on ? [...new Set([...before, ...ids])] : before.filter((id) => !ids.includes(id));
    change({ [of]: after.join(",") || null }, true);
  };
  const count = chosen.memories.length + chosen.messages.length;
  const results = (answer?.memories.length ?? 0) + (answer?.messages.length ?? 0);
  return html`<form class="fields" role="search" aria-label="Search what to forget" onSubmit=${submit}>
      <label>Question or words <input type="search" dir="auto" autocomplete="off" required value=${draft.q}
        onInput=${(/** @type {any} */ event) => setDraft({ ...draft, q: event.target.value })} /></label>
      <label>In the source <input dir="auto" autocomplete="off" placeholder="all" value=${draft.source}
        onInput=${(/** @type {any} */ event) => setDraft({ ...draft, source: event.target.value })} /></label>
      <button>Search</button>
    </form>
    <${RequestState} ...${asked} />
    ${answer && !results && html`<p>Nothing fits. Ask in other words, or in all sources.</p>`}
    ${
      answer &&
      answer.memories.length > 0 &&
      html`<${Results} name="Memories" likely=${likely(answer.memories)} chosen=${chosen.memories}
        rows=${answer.memories.map((hit) => ({ id: hit.id, text: hit.text, more: html`<bdi>${hit.source}</bdi> · <${Time} at=${hit.document_at ?? hit.created_at} />${hit.archived ? " · archived" : ""} · ${percent(hit.score ?? 0)}` }))}
        words=${question.split(/\s+/)} onChoose=${(/** @type {number[]} */ ids, /** @type {boolean} */ on) => choose("memories", chosen.memories, ids, on)} />`
    }
    ${
      answer &&
      answer.messages.length > 0 &&
      html`<${Results} name="Messages" likely=${likely(answer.messages)} chosen=${chosen.messages}
        rows=${answer.messages.map((hit) => ({ id: hit.id, text: hit.content, more: html`<bdi>${hit.user ?? hit.name ?? hit.role}</bdi> in <bdi>${hit.session_id}</bdi> · <${Time} at=${hit.created_at} /> · ${percent(hit.score ?? 0)}` }))}
        words=${question.split(/\s+/)} onChoose=${(/** @type {string[]} */ ids, /** @type {boolean} */ on) => choose("messages", chosen.messages, ids, on)} />`
    }
    ${
      count > 0 &&
      html`<p role="status">${counted(chosen.memories.length, "memory", "memories")} and ${counted(chosen.messages.length, "message", "messages")} chosen.
        Search again to choose more. <button type="button" onClick=${() => change({ memories: null, messages: null })}>Choose none</button></p>
      ${count > MOST && html`<p class="warning">At most ${MOST.toLocaleString("en")} can be forgotten at once. Forget these in parts, or forget their source.</p>`}`
    }`;
}

/**
 * The ids of what probably answers the question.
 * @template {number | string} Id
 * @param {{ id: Id, score?: number | null }[]} hits
 */
const likely = (hits) => hits.filter(({ score }) => (score ?? 0) >= LIKELY).map(({ id }) => id);

/**
 * @template {number | string} Id
 * @param {{ name: string, likely: Id[], chosen: Id[], rows: { id: Id, text: string, more: unknown }[], words: string[], onChoose: (ids: Id[], on: boolean) => void }} props
 */
function Results({ name, likely, chosen, rows, words, onChoose }) {
  const every = likely.every((id) => chosen.includes(id));
  return html`<fieldset class="findings"><legend>${name}</legend>
    ${likely.length > 1 && html`<label class="all"><input type="checkbox" checked=${every} onChange=${() => onChoose(likely, !every)} /> All ${likely.length.toLocaleString("en")} likely ones</label>`}
    ${rows.map(
      ({ id, text, more }) => html`<label key=${id} class="finding"><input type="checkbox" checked=${chosen.includes(id)} onChange=${() => onChoose([id], !chosen.includes(id))} />
        <span><${StoredText} text=${text} words=${words} /><span class="faint">${more}</span></span></label>`,
    )}</fieldset>`;
}

/**
 * @param {string} question
 * @param {string} source
 * @param {AbortSignal} signal
 * @returns {Promise<Found>}
 */
async function found(question, source, signal) {
  const within = source ? { source_prefix: source, source_boundary: true } : {};
  const ofMemories = call("POST", "search/explain", { body: { query: question, k: MEMORIES, include_archived: true, ...within }, signal });
  // Messages have no source, and only agents have messages.
  const ofMessages = async () =>
    !source && (await isAgent(namespace(), signal)) ? call("POST", "messages/search", { body: { agent_name: namespace(), query: question, limit: MESSAGES }, signal }) : [];
  const [memories, messages] = await Promise.all([ofMemories, ofMessages()]);
  return { memories: memories.results, messages };
}
