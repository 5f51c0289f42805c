// The score of a search result: a bar of its parts, and a sentence that says why it was found.
import { html } from "./html.js";

/** @import { Schemas } from "../api.js" */
/** @typedef {Schemas["ExplainedHit"]} Hit */

/** The kind of each part of a score (docs/retrieval.md), as the page names it. @type {Record<string, string>} */
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
  speaker: "speaker",
};
const ORDER = ["meaning", "words", "time", "speaker", "other"];

/**
 * The parts of a raw score that speak for the result, by kind, greatest kinds first as the legend orders them.
 * @param {Hit} hit
 * @returns {[kind: string, value: number][]}
 */
function kindsOf(hit) {
  /** @type {Record<string, number>} */
  const sums = {};
  for (const [name, value] of Object.entries(hit.explanation.parts)) {
    const kind = KINDS[name] ?? "other";
    sums[kind] = (sums[kind] ?? 0) + value;
  }
  return ORDER.filter((kind) => sums[kind] > 0.005).map((kind) => [kind, sums[kind]]);
}

/**
 * The sum of what speaks for a result; the greatest of a list is the whole width of a bar.
 * @param {Hit} hit
 */
export const lengthOf = (hit) => kindsOf(hit).reduce((sum, [, value]) => sum + value, 0);

/** @param {{ hit: Hit, longest: number }} props */
export function ScoreBar({ hit, longest }) {
  const kinds = kindsOf(hit);
  const said = kinds.map(([kind, value]) => `${kind} ${value.toFixed(2)}`).join(", ") || "no part speaks for it";
  return html`<span class="score" role="img" aria-label=${`Parts of the score: ${said}`} title=${said}>
    ${kinds.map(([kind, value]) => html`<span class=${`part ${kind}`} style=${{ width: `${(100 * value) / longest}%` }}></span>`)}
  </span>`;
}

/**
 * A sentence about why a result was found, made from the parts of its score.
 * @param {Hit} hit
 * @param {Schemas["ExplainResponse"]} answer
 */
export function sentence(hit, { query, explain }) {
  const { terms, similarity, vector_rank, parts } = hit.explanation;
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  // The service reports stems; people read the words that they typed.
  const quoted = (/** @type {{ term: string }} */ { term }) => `“${words.find((word) => word.startsWith(term)) ?? term}”`;
  const present = terms.filter(({ tf }) => tf > 0).map(quoted);
  const absent = terms.filter(({ tf }) => !tf).map(quoted);
  const said = [];
  if (similarity !== null && similarity !== undefined) {
    const place = vector_rank === 1 ? "Closest in meaning" : vector_rank ? `Number ${vector_rank} in meaning` : "Far in meaning";
    said.push(`${place} (cosine ${similarity.toFixed(2)})`);
  }
  if (present.length) said.push(`it has ${present.join(", ")}`);
  if (absent.length) said.push(`it lacks ${absent.join(", ")}`);
  if ((parts.period ?? 0) > 0 || (parts.day ?? 0) > 0) said.push(`its time fits ${explain.time?.phrases.map((phrase) => `“${phrase}”`).join(", ")}`);
  if ((parts.speaker ?? 0) > 0) said.push("the person asked about said it");
  if ((parts.tags ?? 0) > 0) said.push("a tag fits");
  if (hit.graph_via?.length) said.push(`it is linked with memory ${hit.graph_via.join(", ")}`);
  return `${said.join("; ")}.`;
}

/**
 * Why a result was found: the sentence, each part of the score, and the raw answer.
 * @param {{ hit: Hit, answer: Schemas["ExplainResponse"] }} props
 */
export function Why({ hit, answer }) {
  const parts = Object.entries(hit.explanation.parts).filter(([, value]) => Math.abs(value) >= 0.005);
  return html`<section aria-label="Why this result">
    <h2>Why this result</h2>
    <p>${sentence(hit, answer)}</p>
    <table class="parts"><caption class="faint">Parts of the score, before it becomes a probability of ${percent(hit.score ?? 0)}</caption>
      <tbody>${parts.map(
        ([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${KINDS[name] ?? "other"}</td><td class="number">${value.toFixed(2)}</td></tr>`,
      )}
      <tr><th scope="row">sum</th><td></td><td class="number">${hit.explanation.raw_score.toFixed(2)}</td></tr></tbody>
    </table>
    <details><summary>Raw JSON</summary><pre tabindex="0" dir="auto">${JSON.stringify(hit, null, 2)}</pre></details>
  </section>`;
}

/**
 * A probability as a percentage that is never rounded to a certainty.
 * @param {number} share
 */
export function percent(share) {
  if (share > 0 && share < 0.01) return "< 1 %";
  return `${Math.min(99, Math.round(share * 100))} %`;
}
