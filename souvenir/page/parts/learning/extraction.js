import { call } from "../../api.js";
import { go } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { signal } from "../../vendor/preact-signals.js";
import { html } from "../html.js";
import { Model, useModel } from "./model.js";
import { Problem } from "../problem.js";

/** What is typed, which stays when another view is shown. */
const draft = signal({ messages: "", source: "page", store: false });

/** Paste a conversation to see what would be learned from it; the proposals are chosen where its extraction is opened. */
export function Extraction() {
  const model = useModel();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const { messages, source, store } = draft.value;
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const body = { messages, source, dry_run: true, ...(store ? { store_messages: true } : {}) };
      const accepted = await call("POST", "memory/extract", { body });
      draft.value = { ...draft.value, messages: "" };
      go("learning", { job: accepted.job_id });
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  /** @param {Partial<typeof draft.value>} typed */
  const type = (typed) => (draft.value = { ...draft.value, ...typed });
  const usable = model.status?.enabled || model.status?.fallback_add_enabled;
  return html`<section aria-label="Learn from a conversation">
    <h2>Learn from a conversation</h2>
    <${Model} ...${model} />
    ${
      usable &&
      html`<form onSubmit=${submit}>
        <p><label>Conversation, with a speaker before each turn<br />
          <textarea class="conversation" dir="auto" required placeholder="User: I moved to Lisbon." value=${messages}
            onInput=${(/** @type {Event} */ event) => type({ messages: /** @type {HTMLTextAreaElement} */ (event.target).value })}></textarea></label></p>
        <p><label>Source <input dir="auto" required autocomplete="off" value=${source} onInput=${(/** @type {Event} */ event) => type({ source: /** @type {HTMLInputElement} */ (event.target).value })} /></label></p>
        <p><label><input type="checkbox" checked=${store} onChange=${(/** @type {Event} */ event) => type({ store: /** @type {HTMLInputElement} */ (event.target).checked })} /> Also store the turns now, as messages of a new session</label></p>
        <p><button disabled=${busy}>Show what would be learned</button></p>
      </form>`
    }
    <${Problem} error=${error} />
  </section>`;
}
