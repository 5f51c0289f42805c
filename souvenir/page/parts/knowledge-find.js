import { call } from "../api.js";
import { useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";

/** @import { Schemas } from "../api.js" */

/**
 * A field for the name of a concept.
 * @param {{ agent: string, name: string, label: string, onFound: (id: number) => void }} props
 */
export function Find({ agent, name, label, onFound }) {
  const [error, setError] = useState("");
  /** @param {SubmitEvent} event */
  const find = async (event) => {
    event.preventDefault();
    const wanted = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get(name));
    try {
      /** @type {Schemas["ConceptDetailsRecord"]} */
      const found = await call("GET", `agents/${agent}/concept?name=${encodeURIComponent(wanted)}`);
      setError("");
      onFound(found.id);
    } catch (failed) {
      setError(/** @type {Error} */ (failed).message);
    }
  };
  return html`<form class="fields" onSubmit=${find}><label>${label} <input name=${name} dir="auto" required autocomplete="off" /></label><button>Find</button></form>
    ${error && html`<p class="error" role="alert">${error}</p>`}`;
}
