import { explainedSearch } from "../api.js";
import { Copy, curl } from "../parts/copy.js";
import { FILTERS, Filters, filtersOf } from "../parts/filters.js";
import { html } from "../parts/html.js";
import { LazyDrawer } from "../parts/lazy.js";
import { useListKeys } from "../parts/list.js";
import { RequestState, useRequest } from "../parts/request.js";
import { Samples } from "../parts/samples.js";
import { lengthOf, percent, ScoreBar, sentence, Why } from "../parts/score.js";
import { StoredText, Time } from "../parts/text.js";
import { go, key, route } from "../state.js";

const DEBOUNCE_MS = 120;
const EVIDENCE = { strong: "Spoken of here", weak: "Perhaps related", none: "Nothing here is about this" };

export function Search() {
  const { query } = route.value;
  const question = query.get("q") ?? "";
  const open = Number(query.get("memory") ?? 0);
  const body = { query: question, k: 20, ...filtersOf(query) };
  const ask = async (/** @type {AbortSignal} */ signal) => {
    await settled(signal);
    return explainedSearch(body, signal);
  };
  const asked = useRequest(question.trim() ? ask : null, [JSON.stringify(body)]);
  const { answer } = asked;
  const hits = answer?.results ?? [];
  const longest = Math.max(...hits.map(lengthOf), 0.01);
  const kept = Object.fromEntries(["q", ...FILTERS].map((name) => [name, query.get(name)]));
  const selected = hits.findIndex(({ id }) => id === open);
  /** @param {number} place */
  const select = (place) => go("search", { ...kept, memory: hits[place]?.id ?? null }, { replace: open > 0 });
  useListKeys(hits.length, selected, select);
  return html`<main id="main" tabindex="-1">
      <h1>Search</h1>
      <${Filters} query=${query} names=${FILTERS} onChange=${(/** @type {Record<string, string | null>} */ change) => go("search", { ...kept, ...change })} />
      <${RequestState} ...${asked} />
      ${!question && html`<${Empty} />`}
      ${
        answer &&
        question &&
        html`<p class="faint" role="status"><span class=${`evidence ${answer.evidence}`}>${EVIDENCE[answer.evidence]}</span> · ${answer.count} results</p>
        <p><${Copy} label="Copy as curl" text=${() => curl("search", body, Boolean(key.value))} />
          <${Copy} label="Copy as JSON" text=${() => JSON.stringify(answer, null, 2)} /></p>
        ${!hits.length && html`<p>No memory fits. Ask in other words, or remove a filter.</p>`}
        <ul class="list" role="listbox" aria-label="Results" tabindex="0">${hits.map(
          (hit, place) => html`<li key=${hit.id} class="hit" role="option"
            aria-selected=${place === selected} onClick=${() => select(place)}>
          <${StoredText} text=${hit.text} words=${question.split(/\s+/)} />
          <div class="faint line"><span><bdi>${hit.source}</bdi> · <${Time} at=${hit.document_at ?? hit.created_at} /> · ${hit.origin_class}${hit.archived ? " · archived" : ""}</span>
            <${ScoreBar} hit=${hit} longest=${longest} /><span class="number">${percent(hit.score ?? 0)}</span></div>
          <div class="faint why">${sentence(hit, answer)}</div>
        </li>`,
        )}</ul>
        ${hits.length > 0 && html`<p class="faint legend">${["meaning", "words", "time", "speaker"].map((kind) => html`<span key=${kind}><span class=${`part ${kind}`}></span> ${kind} </span>`)}</p>`}`
      }
    </main>
    ${open > 0 && html`<${LazyDrawer} id=${open} onClose=${() => select(-1)}>${selected >= 0 && answer && html`<${Why} hit=${hits[selected]} answer=${answer} />`}<//>`}`;
}

/** @param {AbortSignal} signal Ends the wait early. */
const settled = (signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, DEBOUNCE_MS);
    signal.addEventListener("abort", () => clearTimeout(timer));
  });

function Empty() {
  const command = `curl ${location.origin}/memory/add --json '{"text": "Biscuit is a beagle.", "source": "notes"}'`;
  return html`<p>Ask a question above. To remember something, send it to this service:</p>
    <pre tabindex="0">${command}</pre>
    <p><${Copy} label="Copy" text=${() => command} /></p>
    <${Samples} />`;
}
