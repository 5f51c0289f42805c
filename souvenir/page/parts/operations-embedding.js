import { call } from "../api.js";
import { useState } from "../vendor/preact-hooks.js";
import { changes } from "./changes.js";
import { Confirm } from "./confirm.js";
import { html } from "./html.js";
import { notify } from "./notice.js";

/** @import { Schemas } from "../api.js" */

/** Embeds every text again with another model; the job is listed with the others. */
export function Embedding() {
  const [model, setModel] = useState("");
  const [asking, setAsking] = useState(false);
  const start = async () => {
    /** @type {Schemas["ReembedResponse"] | Schemas["JobAccepted"]} */
    const answer = await call("POST", "maintenance/reembed?wait_s=0", { body: { model: model || null } });
    changes.value += 1;
    notify("already_serving" in answer && answer.already_serving ? "This model is already in use." : "The texts are being embedded; see the jobs.");
  };
  /** @param {SubmitEvent} event */
  const ask = (event) => {
    event.preventDefault();
    setAsking(true);
  };
  return html`<section aria-label="Embedding model">
    <h2>Embedding model</h2>
    <form class="fields" onSubmit=${ask}><label>Model; empty for that of the settings
      <input value=${model} autocomplete="off" onInput=${(/** @type {any} */ event) => setModel(event.target.value)} /></label><button>Embed all texts again …</button></form>
    ${
      asking &&
      html`<${Confirm} label="Embed all texts again" word="embed" action="Embed" onConfirm=${start} onClose=${() => setAsking(false)}>
        <p>The texts of all namespaces are embedded with ${model ? html`<bdi>${model}</bdi>` : "the model of the settings"}. Searches go on with the present one until it is done.</p>
      <//>`
    }
  </section>`;
}
