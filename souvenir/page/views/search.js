import { search } from "../api.js";
import { Drawer } from "../parts/drawer.js";
import { html } from "../parts/html.js";
import { useListKeys } from "../parts/list.js";
import { StoredText, Time } from "../parts/text.js";
import { go, offline, route } from "../state.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";

/** @import { Schemas } from "../api.js" */

const DEBOUNCE_MS = 120;
const EVIDENCE = { strong: "Spoken of here", weak: "Perhaps related", none: "Nothing here is about this" };

export function Search() {
  const { query } = route.value;
  const question = query.get("q") ?? "";
  const open = Number(query.get("memory") ?? 0);
  const [answer, setAnswer] = useState(/** @type {Schemas["SearchResponse"] | null} */ (null));
  const [error, setError] = useState("");
  useEffect(() => {
    const cancelled = new AbortController();
    if (!question.trim()) {
      setAnswer(null);
      return;
    }
    const ask = async () => {
      try {
        setAnswer(await search(question, cancelled.signal));
        setError("");
      } catch (failed) {
        if (!cancelled.signal.aborted && !(failed instanceof TypeError))
          setError(String(/** @type {Error} */ (failed).message));
      }
    };
    const timer = setTimeout(ask, DEBOUNCE_MS);
    return () => {
      clearTimeout(timer);
      cancelled.abort();
    };
  }, [question, offline.value]);
  const hits = answer?.results ?? [];
  const selected = hits.findIndex(({ id }) => id === open);
  /** @param {number} place */
  const select = (place) => go("search", { q: question, memory: hits[place]?.id ?? null }, { replace: open > 0 });
  useListKeys(hits.length, selected, select);
  return html`<main id="main" tabindex="-1">
      <h1>Search</h1>
      ${error && html`<p class="error" role="alert">${error}</p>`}
      ${
        !question &&
        html`<p>Ask a question above. To remember something, send it to this service:</p>
        <pre tabindex="0">curl ${location.origin}/memory/add --json '{"text": "Biscuit is a beagle.", "source": "notes"}'</pre>`
      }
      ${
        answer &&
        question &&
        html`<p class="faint" role="status">${EVIDENCE[answer.evidence]} · ${answer.count} results</p>
        <ul class="list" role="listbox" aria-label="Results" tabindex="0">${hits.map(
          (hit, place) => html`<li key=${hit.id} class="hit" role="option"
            aria-selected=${place === selected} onClick=${() => select(place)}>
          <${StoredText} text=${hit.text} words=${question.split(/\s+/)} />
          <div class="faint"><bdi>${hit.source}</bdi> · <${Time} at=${hit.created_at} /> · ${Math.round((hit.score ?? 0) * 100)} %</div>
        </li>`,
        )}</ul>`
      }
    </main>
    ${open > 0 && html`<${Drawer} id=${open} onClose=${() => select(-1)} />`}`;
}
