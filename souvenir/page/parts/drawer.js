import { call, memory as load } from "../api.js";
import { role } from "../state.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { changes, patchMemory, reason } from "./changes.js";
import { Confirm } from "./confirm.js";
import { Facts, History, Links, Provenance, Raw } from "./drawer-details.js";
import { Editor } from "./drawer-editor.js";
import { Tags } from "./drawer-tags.js";
import { html } from "./html.js";
import { notify } from "./notice.js";
import { RequestState, useRequest } from "./request.js";
import { StoredText, Time } from "./text.js";

/** @import { Memory } from "./changes.js" */

/** @param {{ id: number, onClose: () => void, children?: unknown }} props `children` follow the details. */
export function Drawer({ id, onClose, children }) {
  const [edited, setEdited] = useState(0);
  const asked = useRequest(() => load(id), [id, changes.value]);
  const shown = asked.answer?.id === id ? asked.answer : null;
  const writes = role.value !== "read-only";
  useEffect(() => setEdited(0), [id]);
  return html`<aside class="drawer" aria-label="Memory">
    <header><h1>Memory ${id}</h1><button type="button" onClick=${onClose}>Close</button></header>
    <${RequestState} ...${asked} />
    ${
      shown &&
      html`${
        edited === id
          ? html`<${Editor} key=${id} memory=${shown} onClose=${() => setEdited(0)} />`
          : html`<${StoredText} text=${shown.text} />`
      }
      ${writes && edited !== id && html`<${Actions} key=${id} memory=${shown} onEdit=${() => setEdited(id)} onClose=${onClose} />`}
      <${Tags} key=${id} memory=${shown} writes=${writes} />
      <${Facts} memory=${shown} />
      ${shown.source && html`<h2>Source</h2><div dir="auto">${shown.source}</div>`}
      <h2>Created</h2><${Time} at=${shown.created_at} />
      <${Provenance} memory=${shown} />
      <${Links} memory=${shown} />
      <${History} key=${`history${id}`} memory=${shown} writes=${writes} />
      <${Raw} memory=${shown} />`
    }
    ${children}
  </aside>`;
}

/** @param {{ memory: Memory, onEdit: () => void, onClose: () => void }} props */
function Actions({ memory, onEdit, onClose }) {
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState("");
  const { id, pinned, archived } = memory;
  /**
   * @param {Record<string, boolean>} change
   * @param {Record<string, boolean>} back
   * @param {string} text
   */
  const change = async (change, back, text) => {
    try {
      await patchMemory(id, change);
      setError("");
      notify(text, () => patchMemory(id, back));
    } catch (failed) {
      setError(reason(failed));
    }
  };
  return html`<p class="actions">
      <button type="button" onClick=${onEdit}>Edit</button>
      <button type="button" aria-pressed=${pinned}
        onClick=${() => change({ pinned: !pinned }, { pinned }, pinned ? "No longer pinned." : "Pinned: it is protected from being deleted.")}>${pinned ? "Pinned" : "Pin"}</button>
      <button type="button" aria-pressed=${archived}
        onClick=${() => change({ archived: !archived }, { archived }, archived ? "Back in searches." : "Archived: searches leave it out.")}>${archived ? "Archived" : "Archive"}</button>
      ${!pinned && html`<button type="button" class="danger" onClick=${() => setAsking(true)}>Delete</button>`}
    </p>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${
      asking &&
      html`<${Confirm} label=${`Delete memory ${id}`} word="delete" action="Delete for good" onClose=${() => setAsking(false)}
        onConfirm=${async () => {
          await call("DELETE", `memory/${id}`);
          onClose();
          changes.value += 1;
          notify("Memory deleted.");
        }}>
        <p>Its text, facts and links are deleted and cannot be brought back. To only leave it out of searches, archive it.</p>
      <//>`
    }`;
}
