import { changes } from "../parts/changes.js";
import { Copy, curl } from "../parts/copy.js";
import { counted } from "../parts/figures.js";
import { FILTERS, Filters } from "../parts/filters.js";
import { KINDS, commandOf, search } from "../parts/search/found.js";
import { html } from "../parts/html.js";
import { LazyDrawer, LazyMessageDrawer, LazyNextSteps } from "../parts/lazy.js";
import { useListKeys } from "../parts/list.js";
import { latest, theirs } from "../parts/live.js";
import { RequestState, settled, useRequest } from "../parts/request.js";
import { EVIDENCE, LEGEND, percent, ScoreBar, sentence, Why } from "../parts/score.js";
import { shortened, Speaker, StoredText, Time } from "../parts/text.js";
import { address, go, key, namespace, route } from "../state.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

/** @import { Answer, Found } from "../parts/search/found.js" */

/** What the evidence means. @type {Record<string, string>} */
const MEANING = {
  strong: "The subject of the question is spoken of; that does not mean that the question is answered",
  weak: "Something is related to the question",
  none: "What is listed only came closest",
};
const AT_ONCE = 20;
const MOST = 100;

export function Search() {
  const { query } = route.value;
  const question = query.get("q") ?? "";
  const [count, setCount] = useState(AT_ONCE);
  const [seen, setSeen] = useState(latest);
  const kept = Object.fromEntries(["q", "kind", ...FILTERS].map((name) => [name, query.get(name)]));
  const asked = useRequest(
    question.trim()
      ? async (signal) => {
          await settled(signal);
          return search(query, count, signal);
        }
      : null,
    [JSON.stringify(kept), count, changes.value, seen],
  );
  const others = theirs(seen);
  const since = others.added.size + others.changed.size;
  /** @type {Answer | null} */
  const answer = question.trim() ? asked.answer : null;
  const found = answer?.found ?? [];
  const selected = found.findIndex(({ kind, id }) => query.get(kind) === id);
  /** @param {number} place */
  const select = (place) => {
    const chosen = found[place];
    go("search", { ...kept, ...(chosen ? { [chosen.kind]: chosen.id } : {}) }, { replace: selected >= 0 });
  };
  useListKeys(found.length, selected, select);
  return html`<main id="main" tabindex="-1">
      <h1>Search</h1>
      <${Kinds} chosen=${kept.kind ?? ""} onChoose=${(/** @type {string} */ kind) => go("search", { ...kept, kind })} />
      <${Filters} query=${query} names=${FILTERS} onChange=${(/** @type {Record<string, string | null>} */ change) => go("search", { ...kept, ...change })} />
      <${RequestState} ...${asked} />
      ${!question.trim() && html`<${LazyNextSteps} />`}
      ${
        answer &&
        html`<${Summary} answer=${answer} command=${() => commandOf(query, answer, count)} />
        ${since > 0 && html`<p><button type="button" class="new" onClick=${() => setSeen(latest())}>${counted(since, "memory", "memories")} changed since: search again</button></p>`}
        ${!found.length && html`<p>${
          kept.kind === "message" && namespace() === "default"
            ? html`Nothing fits. Messages belong to an agent: <a href=${address("agents")}>choose one</a> to search what was said to it.`
            : "Nothing fits. Ask in other words, or remove a filter."
        }</p>`}
        <${Results} answer=${answer} selected=${selected} onSelect=${select}
          onMore=${answer.more && count < MOST ? () => setCount(Math.min(MOST, count + AT_ONCE)) : null} />`
      }
    </main>
    <${Opened} found=${found[selected]} answer=${answer} onClose=${() => select(-1)} />`;
}

/** @param {{ chosen: string, onChoose: (kind: string) => void }} props */
const Kinds = ({ chosen, onChoose }) =>
  html`<div class="choice" role="group" aria-label="What to search">${Object.entries(KINDS).map(
    ([kind, name]) => html`<button key=${kind} type="button" aria-pressed=${kind === chosen} onClick=${() => onChoose(kind)}>${name}</button>`,
  )}</div>`;

/** @param {{ answer: Answer, command: () => [string, unknown] }} props */
function Summary({ answer, command }) {
  const { found, evidence, degraded, repairs, raw } = answer;
  return html`<div class="summary"><p class="faint" role="status"><span class=${`evidence ${evidence}`} title=${MEANING[evidence]}>${EVIDENCE[evidence]}</span> · ${counted(found.length, "result", "results")}${
    degraded.length > 0 && ` · without ${degraded.join(", ")}, which could not run`
  }${repairs.map(([from, to]) => html` · “${from}” read as “${to}”`)}</p>
    <p class="actions"><${Copy} label="Copy as curl" text=${() => curl(...command(), Boolean(key.value))} />
      <${Copy} label="Copy as JSON" text=${() => JSON.stringify(raw.length > 1 ? raw : raw[0], null, 2)} /></p></div>`;
}

/** @param {{ answer: Answer, selected: number, onSelect: (place: number) => void, onMore: (() => void) | null }} props */
function Results({ answer, selected, onSelect, onMore }) {
  const { found } = answer;
  const list = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [selected]);
  if (!found.length) return null;
  return html`<div class="list" ref=${list}><ul role="listbox" aria-label="Results" tabindex="0">${found.map(
    (each, place) => html`<li key=${`${each.kind} ${each.id}`} class="hit" role="option" aria-selected=${place === selected} onClick=${() => onSelect(place)}>
      <${Result} found=${each} answer=${answer} /></li>`,
  )}</ul>
  ${onMore && html`<p><button type="button" onClick=${onMore}>Show more</button></p>`}</div>
  <p class="faint legend">${LEGEND.map((kind) => html`<span key=${kind}><span class=${`part ${kind}`}></span> ${kind} </span>`)}</p>`;
}

/** @param {{ found: Found, answer: Answer }} props */
function Result({ found, answer }) {
  const { text, at, explanation, score } = found;
  return html`<${StoredText} text=${text} ...${wordsOf(found, answer)} />
    <div class="faint line"><span><${Origin} found=${found} /> · <${Time} at=${at} /></span>
      ${explanation && html`<${ScoreBar} explanation=${explanation} score=${score} />`}<span class="number">${percent(score)}</span></div>
    <div class="faint why">${sentence(found, answer)}</div>`;
}

/** Where a result comes from. @param {{ found: Found }} props */
function Origin({ found: { hit } }) {
  if ("source" in hit) {
    const facts = Array.isArray(hit.facts) ? hit.facts.map((fact) => fact?.text).filter((text) => typeof text === "string") : [];
    return html`<bdi>${hit.source}</bdi> · ${hit.origin_class}${hit.archived ? " · archived" : ""}${facts.length > 0 && html` · by its fact <bdi>“${facts[0]}”</bdi>`}`;
  }
  return html`message of <${Speaker} message=${hit} /> in <bdi>${shortened(hit.session_id)}</bdi>`;
}

/** The drawer of what the address opens, whether or not it is in the list. @param {{ found: Found | undefined, answer: Answer | null, onClose: () => void }} props */
function Opened({ found, answer, onClose }) {
  const { query } = route.value;
  const why = found && answer && html`<${Why} found=${found} answer=${answer} />`;
  const [memory, message] = [Number(query.get("memory") ?? 0), query.get("message")];
  if (memory > 0) return html`<${LazyDrawer} id=${memory} onClose=${onClose}>${why}<//>`;
  return message && html`<${LazyMessageDrawer} id=${message} onClose=${onClose}>${why}<//>`;
}

/**
 * What to mark in a result: the words of the question that it has, or all of them where the service does not say.
 * @param {Found} found
 * @param {Answer} answer
 * @returns {{ words?: string[], stems?: string[] }}
 */
const wordsOf = ({ explanation }, { question }) =>
  explanation ? { stems: explanation.terms.filter(({ tf }) => tf > 0).map(({ term }) => term) } : { words: question.split(/\s+/) };
