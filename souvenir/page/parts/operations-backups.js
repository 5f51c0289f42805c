import { call } from "../api.js";
import { useState } from "../vendor/preact-hooks.js";
import { changes } from "./changes.js";
import { Confirm } from "./confirm.js";
import { bytes, counted } from "./figures.js";
import { html } from "./html.js";
import { notify } from "./notice.js";
import { RequestState, useRequest } from "./request.js";
import { Time } from "./text.js";

/** @import { Schemas } from "../api.js" */

export function Backups() {
  const asked = useRequest((signal) => call("GET", "backups", { signal }), []);
  /** @type {Schemas["BackupsResponse"] | null} */
  const answer = asked.answer;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const [chosen, setChosen] = useState(/** @type {Schemas["BackupsResponse"]["backups"][number] | null} */ (null));
  const restore = async () => {
    const { message } = await call("POST", "restore", { body: { backup_name: chosen?.name } });
    changes.value += 1;
    notify(message);
    asked.again();
  };
  const make = async () => {
    setBusy(true);
    try {
      const made = await call("POST", "backup");
      notify(made.message);
      setError("");
    } catch (failed) {
      setError(/** @type {Error} */ (failed).message);
    }
    setBusy(false);
    asked.again();
  };
  return html`<section aria-label="Backups">
    <h2>Backups</h2>
    <p><button type="button" disabled=${busy} onClick=${make}>${busy ? "Backing up …" : "Back up now"}</button></p>
    <${RequestState} error=${error || asked.error} slow=${asked.slow} />
    ${answer && !answer.backups.length && html`<p>There is no backup yet.</p>`}
    ${
      answer &&
      answer.backups.length > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Name</th><th>Made</th><th>Memories</th><th>Size</th><th></th></tr></thead>
        <tbody>${answer.backups.map(
          (each) => html`<tr key=${each.name}><td>${each.name}</td><td><${Time} at=${each.created_at} /></td>
          <td>${each.memories.toLocaleString("en")}</td><td>${bytes(each.bytes)}</td>
          <td><button type="button" class="danger" onClick=${() => setChosen(each)}>Restore …</button></td></tr>`,
        )}</tbody></table></div>`
    }
    ${
      chosen &&
      html`<${Confirm} label="Restore a backup" word=${chosen.name} action="Restore" onConfirm=${restore} onClose=${() => setChosen(null)}>
        <p>All namespaces go back to this backup of ${counted(chosen.memories, "memory", "memories")}, <${Time} at=${chosen.created_at} />. What is stored now is backed up first.</p>
      <//>`
    }
  </section>`;
}
