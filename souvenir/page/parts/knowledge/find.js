import { call } from "../../api.js";
import { useState } from "../../vendor/preact-hooks.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { Problem } from "../problem.js";
import { useRequest } from "../request.js";

/** @import { Schemas } from "../../api.js" */

const SUGGESTED = 1000;

/**
 * A field for the name of a concept, in any spelling, which suggests the names of the agent's concepts.
 * @param {{ agent: string, name: string, label: string, action?: string, without?: number, onFound: (found: Schemas["ConceptDetailsRecord"]) => unknown }} props
 *     `without` is the id of a concept that is not suggested.
 */
export function Find({ agent, name, label, action = "Find", without, onFound }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [asking, setAsking] = useState(false);
  const suggested = useRequest(asking ? (signal) => call("GET", `agents/${agent}/concepts?limit=${SUGGESTED}`, { signal }) : null, [agent, asking]);
  /** @type {Schemas["ConceptPage"] | null} */
  const page = suggested.answer;
  const offered = offers(page?.concepts.filter(({ id }) => id !== without) ?? []);
  /** @param {SubmitEvent} event */
  const find = async (event) => {
    event.preventDefault();
    const wanted = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get(name));
    const chosen = offered.find(({ value }) => value.toLowerCase() === wanted.toLowerCase());
    try {
      const found = await call("GET", chosen ? `agents/${agent}/concepts/${chosen.id}` : `agents/${agent}/concept?name=${encodeURIComponent(wanted)}`);
      setError(null);
      await onFound(found);
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<form class="fields" onSubmit=${find}><label>${label} <input name=${name} dir="auto" required autocomplete="off" list=${`names-${name}`} onFocus=${() => setAsking(true)} /></label><button>${action}</button>
      <datalist id=${`names-${name}`}>${offered.map(({ id, value, about }) => html`<option key=${id} value=${value} label=${value === about ? undefined : about}></option>`)}</datalist></form>
    <${Problem} error=${error} />`;
}

/**
 * What is suggested for each concept: its name, with kind and mentions where another one has the same name.
 * @param {Schemas["ConceptRecord"][]} concepts
 */
function offers(concepts) {
  /** @type {Map<string, number>} */
  const times = new Map();
  for (const { name } of concepts) times.set(name.toLowerCase(), (times.get(name.toLowerCase()) ?? 0) + 1);
  return concepts.map(({ id, name, kind, mentions }) => {
    const about = `${name} (${kind}, ${counted(mentions, "mention", "mentions")})`;
    return { id, about, value: (times.get(name.toLowerCase()) ?? 0) > 1 ? about : name };
  });
}
