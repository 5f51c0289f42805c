import { call } from "../../api.js";
import { role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { html } from "../html.js";
import { notify } from "../notice.js";
import { Problem } from "../problem.js";
import { RequestState, useRequest } from "../request.js";

/** @import { Schemas } from "../../api.js" */

const LISTED = 1000;

/**
 * The preferences of the user of an agent: values by key, which are set, changed and deleted with undo.
 * @param {{ agent: string }} props
 */
export function Preferences({ agent }) {
  const path = `preferences/${encodeURIComponent(agent)}`;
  const asked = useRequest((signal) => call("GET", `${path}?limit=${LISTED}`, { signal }), [path]);
  const [editing, setEditing] = useState(/** @type {string | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  /** @type {Schemas["PreferencePage"] | null} */
  const answer = asked.answer;
  const mayWrite = role.value !== "read-only";
  /** @param {string} key */
  const own = (key) => `${path}/${encodeURIComponent(key)}`;
  /**
   * Set a value, or delete the preference.
   * @param {string} key
   * @param {string | undefined} value
   */
  const store = async (key, value) => {
    if (value === undefined) await call("DELETE", own(key));
    else await call("PUT", own(key), { body: { value } });
    asked.again();
  };
  /**
   * @param {string} key
   * @param {string | undefined} value
   * @param {string} said
   */
  const change = async (key, value, said) => {
    const before = answer?.preferences[key];
    try {
      await store(key, value);
      setError(null);
      setEditing(null);
      notify(said, () => store(key, before));
      return true;
    } catch (failed) {
      setError(failed);
      return false;
    }
  };
  /** @param {SubmitEvent} event */
  const add = async (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const fields = new FormData(form);
    const key = String(fields.get("key")).trim();
    if (await change(key, String(fields.get("value")), `The preference ${key} is set.`)) form.reset();
  };
  return html`<section aria-label="Preferences">
    <${RequestState} error=${asked.error} slow=${asked.slow && !answer} />
    <${Problem} error=${error} />
    ${answer && !answer.total && html`<p>No preference yet. A preference is a value by key, such as <code>tone</code>: short answers.</p>`}
    ${
      answer &&
      answer.total > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Key</th><th>Value</th>${mayWrite && html`<th>Actions</th>`}</tr></thead>
        <tbody>${Object.entries(answer.preferences).map(
          ([key, value]) => html`<tr key=${key}><th scope="row"><bdi>${key}</bdi></th>
            ${
              editing === key
                ? html`<td colspan="2"><${Edit} label=${`Value of ${key}`} value=${value} onClose=${() => setEditing(null)}
                    onSave=${(/** @type {string} */ draft) => change(key, draft, `The preference ${key} is changed.`)} /></td>`
                : html`<td dir="auto">${value}</td>${
                    mayWrite &&
                    html`<td class="actions"><button type="button" aria-label=${`Edit ${key}`} onClick=${() => setEditing(key)}>Edit</button>
                    <button type="button" aria-label=${`Delete ${key}`} onClick=${() => change(key, undefined, `The preference ${key} is deleted.`)}>Delete</button></td>`
                  }`
            }</tr>`,
        )}</tbody></table></div>
      ${answer.total > LISTED && html`<p class="faint">The first ${LISTED.toLocaleString("en")} of ${answer.total.toLocaleString("en")} are shown.</p>`}`
    }
    ${
      answer &&
      mayWrite &&
      html`<h2>Set a preference</h2><form class="fields" onSubmit=${add}>
        <label>Key <input name="key" required autocomplete="off" dir="auto" /></label>
        <label>Value <input name="value" required size="40" autocomplete="off" dir="auto" /></label><button>Set</button></form>`
    }
  </section>`;
}

/** @param {{ label: string, value: string, onSave: (draft: string) => void, onClose: () => void }} props */
function Edit({ label, value, onSave, onClose }) {
  const [draft, setDraft] = useState(value);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    onSave(draft);
  };
  return html`<form class="fields" onSubmit=${submit}><input aria-label=${label} size="40" required dir="auto" value=${draft} onInput=${(/** @type {Event} */ event) => setDraft(/** @type {HTMLInputElement} */ (event.target).value)} />
    <button>Save</button><button type="button" onClick=${onClose}>Cancel</button></form>`;
}
