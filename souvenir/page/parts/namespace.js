import { call } from "../api.js";
import { go, namespace, ownNamespace, route } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { useRequest } from "./request.js";

/** @import { Schemas } from "../api.js" */

const SUGGESTED = 200;

/** The namespace that is shown, which a key of all namespaces can change. An agent's memory is the namespace of its name. */
export function NamespaceChooser() {
  const [asked, setAsked] = useState(false);
  const [draft, setDraft] = useState(/** @type {string | null} */ (null));
  const load = (/** @type {AbortSignal} */ signal) => call("GET", `agents?limit=${SUGGESTED}`, { signal });
  const known = useRequest(asked ? load : null, [asked]);
  /** @type {Schemas["AgentPage"] | null} */
  const answer = known.answer;
  if (ownNamespace.value) return html`<bdi title="The namespace of this key">${ownNamespace.value}</bdi>`;
  const choose = () => {
    const name = draft?.trim() || "default";
    setDraft(null);
    go(route.value.view, { in: name === "default" ? null : name });
  };
  return html`<input class="namespace" list="namespaces" aria-label="Namespace or agent" title="Namespace or agent" autocomplete="off" dir="auto"
      value=${draft ?? namespace()} onFocus=${(/** @type {Event} */ event) => {
        setAsked(true);
        /** @type {HTMLInputElement} */ (event.target).select();
      }} onInput=${(/** @type {Event} */ event) => setDraft(/** @type {HTMLInputElement} */ (event.target).value)} onChange=${choose} />
    <datalist id="namespaces">
      <option value="default"></option>
      ${answer?.agents.map(({ name }) => html`<option key=${name} value=${name}></option>`)}
    </datalist>`;
}
