// The score of a search result: a bar of its parts, and a sentence that says why it was found.
import { html } from "./html.js";

/** @import { Schemas } from "../api.js" */
/** @import { Answer, Found } from "./search/found.js" */
/** @typedef {Schemas["Explanation"]} Explanation */

/** The kind of each part of a score (docs/ranking.md), as the page names it. @type {Record<string, string>} */
const KINDS = {
  lexical: "words",
  order: "words",
  facts: "words",
  dense: "meaning",
  late: "meaning",
  rerank: "meaning",
  period: "time",
  day: "time",
  recency: "time",
  time: "time",
  speaker: "speaker",
  role: "speaker",
};
/** How many times as probable the first result is if no other comes near. */
const FAR = 4;
export const LEGEND = ["meaning", "words", "time", "speaker", "other"];

/** The evidence of an answer in plain words. */
export const EVIDENCE = { strong: "Spoken of here", weak: "Perhaps related", none: "Nothing here is about this" };

/**
 * The parts of a raw score that speak for the result, by kind, in the order of the legend.
 * @param {Explanation} explanation
 * @returns {[kind: string, value: number][]}
 */
function kindsOf({ parts }) {
  /** @type {Record<string, number>} */
  const sums = {};
  for (const [name, value] of Object.entries(parts)) {
    const kind = KINDS[name] ?? "other";
    sums[kind] = (sums[kind] ?? 0) + value;
  }
  return LEGEND.filter((kind) => sums[kind] > 0.005).map((kind) => [kind, sums[kind]]);
}

/** A bar as long as the probability, divided among what speaks for the result. @param {{ explanation: Explanation, score: number }} props */
export function ScoreBar({ explanation, score }) {
  const kinds = kindsOf(explanation);
  const sum = kinds.reduce((total, [, value]) => total + value, 0);
  const said = kinds.map(([kind, value]) => `${kind} ${value.toFixed(2)}`).join(", ") || "no part speaks for it";
  return html`<span class="score" role="img" aria-label=${`Parts of the score: ${said}`} title=${said}>
    ${kinds.map(([kind, value]) => html`<span class=${`part ${kind}`} style=${{ width: `${(100 * score * value) / sum}%` }}></span>`)}
  </span>`;
}

/**
 * A sentence about why a result was found, made from the parts of its score.
 * @param {Found} found
 * @param {Answer} answer
 */
export function sentence(found, { question, repairs, found: all }) {
  const { hit, kind, explanation, phrases } = found;
  const [first, second] = all;
  /** @type {string[]} */
  const said = [];
  // Memories and messages are ranked by themselves.
  const among = all.some((other) => other.kind !== kind) ? ` of the ${kind === "memory" ? "memories" : "messages"}` : "";
  if (explanation) said.push(...reasons(explanation, question, repairs, phrases, among));
  else if (hit.similarity) said.push(`Cosine ${figure(hit.similarity)} to the question`);
  if ("graph_via" in hit && hit.graph_via?.length) said.push(`it is linked with memory ${hit.graph_via.join(", ")}`);
  if (found === first && second && second.score * FAR <= first.score) said.push(`no other result comes near (${percent(second.score)})`);
  return said.length ? `${said.join("; ")}.` : "";
}

/** Two decimals, without a minus before zero. @param {number} value */
const figure = (value) => (Math.round(value * 100) / 100 + 0).toFixed(2);

/**
 * @param {Explanation} explanation
 * @param {string} question
 * @param {[string, string][]} repairs
 * @param {string[]} phrases
 * @param {string} among
 */
function reasons({ terms, similarity, vector_rank: rank, parts }, question, repairs, phrases, among) {
  const corrected = new Map(repairs.map(([from, to]) => [to, from]));
  const words = question.match(/[\p{L}\p{N}]+/gu) ?? [];
  // The service reports stems; people read the words that they typed.
  const quoted = (/** @type {{ term: string }} */ { term }) => `“${words.find((word) => word.toLowerCase().startsWith(corrected.get(term) ?? term)) ?? term}”`;
  const present = terms.filter(({ tf }) => tf > 0).map(quoted);
  const absent = terms.filter(({ tf }) => !tf).map(quoted);
  const place = rank === 1 ? "Closest in meaning" : rank ? `Number ${rank} in meaning` : "Far in meaning";
  const said = [`${place}${rank ? among : ""} (cosine ${figure(similarity)})`];
  if (present.length) said.push(`it has ${present.join(", ")}`);
  if (absent.length) said.push(`it lacks ${absent.join(", ")}`);
  if ((parts.period ?? 0) > 0 || (parts.day ?? 0) > 0) said.push(`its time fits ${phrases.map((phrase) => `“${phrase}”`).join(", ")}`);
  if ((parts.speaker ?? 0) > 0) said.push("the person asked about said it");
  if ((parts.role ?? 0) > 0) said.push("the user said it");
  if ((parts.tags ?? 0) > 0) said.push("a tag fits");
  return said;
}

/**
 * Why a result was found: the sentence, each part of the score, and the raw answer.
 * @param {{ found: Found, answer: Answer }} props
 */
export function Why({ found, answer }) {
  const { explanation, hit, score } = found;
  return html`<section aria-label="Why this result">
    <h2>Why this result</h2>
    <p>${sentence(found, answer)}</p>
    ${explanation ? html`<${Parts} explanation=${explanation} score=${score} />` : html`<p class="faint">An admin key sees the parts of the score.</p>`}
    <details><summary>Result as JSON</summary><pre tabindex="0" dir="auto">${JSON.stringify(hit, null, 2)}</pre></details>
  </section>`;
}

/** @param {{ explanation: Explanation, score: number }} props */
function Parts({ explanation, score }) {
  const parts = Object.entries(explanation.parts).filter(([, value]) => Math.abs(value) >= 0.005);
  return html`<table class="parts"><caption class="faint">Parts of the score, before it becomes a probability of ${percent(score)}</caption>
    <tbody>${parts.map(
      ([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${KINDS[name] ?? "other"}</td><td class="number">${value.toFixed(2)}</td></tr>`,
    )}
    <tr><th scope="row">sum</th><td></td><td class="number">${explanation.raw_score.toFixed(2)}</td></tr></tbody>
  </table>`;
}

/**
 * A probability as a percentage that is never rounded to a certainty.
 * @param {number} share
 */
export function percent(share) {
  if (share > 0 && share < 0.01) return "<\u00a01\u00a0%";
  return `${Math.min(99, Math.round(share * 100))}\u00a0%`;
}
