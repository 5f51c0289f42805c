import { call } from "../../api.js";
import { useEffect, useState } from "../../vendor/preact-hooks.js";
import { changes } from "../changes.js";
import { Confirm } from "../confirm.js";
import { bytes, counted } from "../figures.js";
import { html } from "../html.js";
import { duration } from "../job-progress.js";
import { notify } from "../notice.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["BackupRecord"]} Backup */

const OLD_MS = 7 * 24 * 3600 * 1000;
const COUNTED_CHANGES = 500;

export function Backups() {
  const asked = useRequest((signal) => call("GET", "backups", { signal }), []);
  /** @type {Schemas["BackupsResponse"] | null} */
  const answer = asked.answer;
  const [since, setSince] = useState(0);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [chosen, setChosen] = useState(/** @type {Backup | null} */ (null));
  const make = async () => {
    setSince(Date.now());
    try {
      const made = await call("POST", "backup");
      notify(made.message);
      setError(null);
    } catch (failed) {
      setError(failed);
    }
    setSince(0);
    asked.again();
  };
  return html`<section aria-label="Backups">
    <h2>Backups</h2>
    ${answer && html`<${Age} newest=${answer.backups[0]} />`}
    <p><button type="button" disabled=${since > 0} onClick=${make}>Back up now</button> ${since > 0 && html`<${Working} since=${since} />`}</p>
    <${RequestState} error=${error || asked.error} slow=${asked.slow && !answer} />
    ${
      answer &&
      answer.backups.length > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Name</th><th></th><th>Made</th><th>Memories</th><th>Size</th></tr></thead>
        <tbody>${answer.backups.map(
          (each) => html`<tr key=${each.name}><td class="id">${each.name}</td>
          <td><button type="button" class="danger" aria-label=${`Restore ${each.name} …`} onClick=${() => setChosen(each)}>Restore …</button></td>
          <td><${Time} at=${each.created_at} /></td><td>${each.memories.toLocaleString("en")}</td><td>${bytes(each.bytes)}</td></tr>`,
        )}</tbody></table></div>`
    }
    <${Sync} />
    ${chosen && html`<${Restore} backup=${chosen} onRestored=${asked.again} onClose=${() => setChosen(null)} />`}
  </section>`;
}

/** @param {{ newest?: Backup }} props */
function Age({ newest }) {
  if (!newest) return html`<p class="warning">There is no backup yet. A lost disk would lose everything that is stored.</p>`;
  if (Date.now() - Date.parse(newest.created_at) > OLD_MS) return html`<p class="warning">The newest backup was made <${Time} at=${newest.created_at} />.</p>`;
  return html`<p>The newest backup was made <${Time} at=${newest.created_at} />.</p>`;
}

/** A backup is one request without figures of its progress. @param {{ since: number }} props */
function Working({ since }) {
  const [, setNow] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return html`<progress aria-label="Progress of the backup"></progress> <span role="status">Backing up, for ${duration((Date.now() - since) / 1000)}. Reads and writes go on.</span>`;
}

/** @param {{ backup: Backup, onRestored: () => void, onClose: () => void }} props */
function Restore({ backup, onRestored, onClose }) {
  const asked = useRequest((signal) => call("GET", `audit?since=${encodeURIComponent(backup.created_at)}&limit=${COUNTED_CHANGES}`, { signal }), [backup.name]);
  /** @type {Schemas["AuditResponse"] | null} */
  const answer = asked.answer;
  const changed = answer?.entries.filter(({ action }) => action.startsWith("memory.")).length ?? 0;
  const restore = async () => {
    const { message } = await call("POST", "restore", { body: { backup_name: backup.name } });
    changes.value += 1;
    notify(message);
    onRestored();
  };
  return html`<${Confirm} label="Restore a backup" word="restore" action="Restore" onConfirm=${restore} onClose=${onClose}>
    <p>All namespaces go back to the backup <bdi class="id">${backup.name}</bdi> of ${counted(backup.memories, "memory", "memories")}, <${Time} at=${backup.created_at} />.</p>
    ${answer && html`<p>${answer.has_more ? "More than " : ""}${counted(changed, "change of a memory", "changes of memories")} since then, and everything else that was stored since, will be gone.</p>`}
    <p>API keys, counts of usage and the audit log stay as they are now, and what was forgotten for good does not come back. What is stored now is backed up first.</p>
  <//>`;
}

/** One line about the copies in a bucket. */
function Sync() {
  const asked = useRequest((signal) => call("GET", "sync/status", { signal }), []);
  /** @type {Schemas["SyncStatusResponse"] | null} */
  const answer = asked.answer;
  if (!answer) return html`<${RequestState} error=${asked.error} slow=${false} />`;
  if (!answer.enabled) return html`<p class="faint">Copies elsewhere: not configured (SYNC_BUCKET).</p>`;
  return html`<p>Copies in the bucket: ${answer.remote_count.toLocaleString("en")}${answer.encrypted ? ", encrypted" : ", not encrypted"}${answer.latest_remote ? `; the newest is ${answer.latest_remote}` : ""}${answer.latest_local && answer.latest_local !== answer.latest_remote ? `; ${answer.latest_local} is not there yet` : ""}.</p>`;
}
