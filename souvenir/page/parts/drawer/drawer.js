import { call, memory as load } from "../../api.js";
import { go, role, route } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { asked, changed, changeMemories, changes, refusals, updateMemory } from "../changes.js";
import { Confirm } from "../confirm.js";
import { History, Raw } from "./details.js";
import { ABOUT_EDIT, ABOUT_REPLACE, draftOf, Editor, write } from "./editor.js";
import { Facts } from "./facts.js";
import { Links } from "./links.js";
import { Provenance } from "./provenance.js";
import { Tags } from "./tags.js";
import { Versions } from "./versions.js";
import { forgetAddress } from "../forget/kinds.js";
import { html } from "../html.js";
import { latest, theirs } from "../live.js";
import { notify } from "../notice.js";
import { Problem } from "../problem.js";
import { RequestState, useRequest } from "../request.js";
import { styles } from "../styles.js";
import { isLong, StoredText, Time } from "../text.js";

await styles("style/drawer.css");

/** @import { Memory } from "../changes.js" */

/** @param {{ id: number, onClose: () => void, children?: unknown }} props `children` follow the facts. */
export function Drawer({ id, onClose, children }) {
  return html`<aside class="drawer" aria-label="Memory" tabindex="-1">
    <header><h1>Memory ${id}</h1><button type="button" onClick=${onClose}>Close</button></header>
    <${Details} key=${id} id=${id} onClose=${onClose}>${children}<//>
  </aside>`;
}

/** @param {{ id: number, onClose: () => void, children?: unknown }} props */
function Details({ id, onClose, children }) {
  const [seen, setSeen] = useState(latest);
  const request = useRequest(() => asked(() => load(id)), [id, changes.value, seen]);
  const memory = request.answer && changed(request.answer);
  const writes = role.value !== "read-only";
  const draft = draftOf(id);
  const isChanged = theirs(seen).changed.has(id);
  return html`<${RequestState} ...${request} />
    <div role="status">${isChanged && html`<p class="conflict">This memory was changed by others. <button type="button" onClick=${() => setSeen(latest())}>Show it as it is now</button></p>`}</div>
    ${
      memory &&
      html`${writes && draft ? html`<${Editor} memory=${memory} draft=${draft} onOpen=${openInstead} />` : html`${writes && html`<${Actions} memory=${memory} onClose=${onClose} />`}
        <${Problem} error=${refusals.value.get(id) ?? null} />
        <${FullText} text=${memory.text} />`}
      <${Tags} memory=${memory} writes=${writes} />
      <${Facts} memory=${memory} writes=${writes} />
      ${children}
      ${memory.source && html`<h2>Source</h2><div dir="auto">${memory.source}</div>`}
      <h2>Created</h2><${Time} at=${memory.created_at} />
      <${Provenance} memory=${memory} />
      <${Versions} memory=${memory} />
      <${Links} memory=${memory} writes=${writes} />
      <${History} memory=${memory} writes=${writes} />
      <${Raw} memory=${memory} />`
    }`;
}

/**
 * Open another memory, unless the user went on meanwhile.
 * @param {number} from
 * @param {number} to
 */
function openInstead(from, to) {
  const { view, query } = route.peek();
  if (Number(query.get("memory")) === from) go(view, { ...Object.fromEntries(query), memory: to }, { replace: true });
}

/** @param {{ text: string }} props */
function FullText({ text }) {
  const [whole, setWhole] = useState(false);
  return html`<${StoredText} text=${text} whole=${whole} />
    ${isLong(text) && !whole && html`<p><button type="button" onClick=${() => setWhole(true)}>Show all ${text.length.toLocaleString("en")} characters</button></p>`}`;
}

/** @param {{ memory: Memory, onClose: () => void }} props */
function Actions({ memory, onClose }) {
  const [asking, setAsking] = useState(false);
  const { id, pinned, archived } = memory;
  // The drawer shows why a change was refused.
  const pin = () => updateMemory(id, { pinned: !pinned }, { pinned }, pinned ? "No longer pinned." : "Pinned: it is protected from being deleted.").catch(() => {});
  const archive = () => updateMemory(id, { archived: !archived }, { archived }, archived ? "Back in searches." : "Archived: searches leave it out.").catch(() => {});
  return html`<p class="actions">
      <button type="button" title=${ABOUT_EDIT} onClick=${() => write(memory, false)}>Edit</button>
      ${!pinned && !archived && html`<button type="button" title=${ABOUT_REPLACE} onClick=${() => write(memory, true)}>Replace</button>`}
      <button type="button" aria-pressed=${pinned} onClick=${pin}>${pinned ? "Pinned" : "Pin"}</button>
      <button type="button" aria-pressed=${archived} onClick=${archive}>${archived ? "Archived" : "Archive"}</button>
      ${!pinned && html`<button type="button" class="danger" onClick=${() => setAsking(true)}>Delete</button>`}
      ${role.value === "admin" && html`<a href=${forgetAddress("memory_id", id)}>Forget for good, in backups too</a>`}
    </p>
    ${
      asking &&
      html`<${Confirm} label=${`Delete memory ${id}`} word="delete" action="Delete" onClose=${() => setAsking(false)}
        onConfirm=${async () => {
          await changeMemories([id], { send: (at) => call("DELETE", `memory/${id}`, { at }) });
          onClose();
          notify("Memory deleted.");
        }}>
        <p>Its text, facts and links are deleted and cannot be brought back here; only a backup made before still has them. To only leave it out of searches, archive it.</p>
      <//>`
    }`;
}
