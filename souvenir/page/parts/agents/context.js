import { call } from "../../api.js";
import { go, route } from "../../state.js";
import { ContextCopies } from "./context-copies.js";
import { ContextForm, tokensOf } from "./context-form.js";
import { ContextText } from "./context-text.js";
import { LEFT_OUT, LeftOut } from "./context-left-out.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { RequestState, settled, useRequest } from "../request.js";
import { EVIDENCE } from "../score.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["ContextResponse"]} Answer */

/** What `degraded` names, in plain words. @type {Record<string, string>} */
const MISSING = {
  vector: "the search by meaning could not run",
  lexical: "the search by words could not run",
  rerank: "the results were not re-ranked",
  messages: "messages were not searched",
  memories: "memories were not searched",
  deadline: "the time ran out",
  blocks_over_budget: "the blocks alone are longer than the budget",
};

/**
 * The text that a model would get for a question within a budget. Question, budget and options are in the address, and the
 * answer follows them.
 * @param {{ agent: string }} props
 */
export function ContextPreview({ agent }) {
  const { query } = route.value;
  const given = Object.fromEntries(["ask", "tokens", "session", "user", "shape"].map((name) => [name, query.get(name) ?? ""]));
  const tokens = tokensOf(given.tokens);
  /** @param {Record<string, string | number | null>} change */
  const change = (change) => go("agents", { ...given, ...change }, { replace: true });
  const path = `context/${encodeURIComponent(agent)}`;
  const body = {
    query: given.ask,
    max_tokens: tokens,
    ...(given.session && { session_id: given.session }),
    ...(given.user && { user: given.user }),
    ...(given.shape && { shape: given.shape }),
  };
  const ask = async (/** @type {AbortSignal} */ signal) => {
    await settled(signal);
    /** @type {Answer} */
    const answer = await call("POST", path, { body: { ...body, explain: true }, signal });
    return { answer, tokens };
  };
  const asked = useRequest(given.ask.trim() ? ask : null, [path, JSON.stringify(body)]);
  const found = given.ask.trim() ? asked.answer : null;
  return html`<${ContextForm} given=${given} tokens=${tokens} onChange=${change} />
    <${RequestState} error=${asked.error} slow=${asked.slow && !found} />
    ${!given.ask.trim() && html`<p>Ask as the user of the agent would, and see exactly what a model would be given.</p>`}
    ${
      found &&
      html`<section class="context" aria-label="Context" aria-busy=${asked.slow}>
        <${Figures} ...${found} />
        <${ContextCopies} agent=${agent} path=${path} body=${body} answer=${found.answer} />
        <${Summary} answer=${found.answer} />
        <${ContextText} agent=${agent} answer=${found.answer} />
        <${LeftOut} agent=${agent} dropped=${found.answer.dropped} />
      </section>`
    }`;
}

/** @param {{ answer: Answer, tokens: number }} props */
function Figures({ answer, tokens }) {
  const { evidence, degraded, memory_blocks, relevant_memories, relevant_messages } = answer;
  const parts = [
    counted(memory_blocks.length, "block", "blocks"),
    counted(relevant_memories.length, "memory", "memories"),
    counted(relevant_messages.length, "message", "messages"),
  ];
  return html`<p role="status"><span class=${`evidence ${evidence}`}>${EVIDENCE[evidence]}</span> · <meter min="0" max=${tokens} value=${answer.tokens} aria-label="Tokens used"></meter>
      ${answer.tokens.toLocaleString("en")} of ${tokens.toLocaleString("en")} tokens · ${parts.join(" · ")}</p>
    ${degraded.length > 0 && html`<p class="warning">Something is missing: ${degraded.map((name) => MISSING[name] ?? name).join("; ")}.</p>`}`;
}

/**
 * What else there is to know about the text, which can be long, before it.
 * @param {{ answer: Answer }} props
 */
function Summary({ answer: { dropped, stable_prefix, tokens, text } }) {
  const count = Math.max(dropped.messages + dropped.memories, dropped.results?.length ?? 0);
  const same = Math.round((tokens * stable_prefix.length) / Math.max(1, text.length));
  // The fragment of the address is the view's.
  const show = (/** @type {Event} */ event) => {
    event.preventDefault();
    const place = document.getElementById(LEFT_OUT);
    place?.scrollIntoView();
    place?.focus({ preventScroll: true });
  };
  return html`<p class="faint">${count > 0 ? html`<a href=${`#${LEFT_OUT}`} onClick=${show}>${count.toLocaleString("en")} left out</a>` : "Nothing was left out"}${
    stable_prefix && ` · about the first ${same.toLocaleString("en")} tokens are the same for every question`
  }</p>`;
}
