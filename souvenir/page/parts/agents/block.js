import { ApiError, call } from "../../api.js";
import { role } from "../../state.js";
import { useEffect, useState } from "../../vendor/preact-hooks.js";
import { Confirm } from "../confirm.js";
import { html } from "../html.js";
import { notify } from "../notice.js";
import { Problem } from "../problem.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";
import { noteUnsaved } from "../unsaved.js";
import { WordDiff } from "../word-diff.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["MemoryBlock"]} BlockRecord */

/** @param {{ path: string, block: BlockRecord, onChanged: () => void }} props */
export function Block({ path, block, onChanged }) {
  const [edit, setEdit] = useState(/** @type {{ base: BlockRecord, draft: string } | null} */ (null));
  const [theirs, setTheirs] = useState(/** @type {BlockRecord | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [history, setHistory] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const mayWrite = role.value !== "read-only";
  useEffect(() => {
    noteUnsaved(path, edit !== null && edit.draft !== edit.base.value);
    return () => noteUnsaved(path, false);
  }, [path, edit]);
  /**
   * @param {string} value
   * @param {number} version
   */
  const store = (value, version) => call("PUT", path, { body: { value }, ifMatch: `"${version}"` });
  const close = () => {
    setEdit(null);
    setTheirs(null);
    setError(null);
  };
  const save = async () => {
    if (!edit) return;
    try {
      const saved = await store(edit.draft, edit.base.version);
      close();
      onChanged();
      notify(`The block ${block.label} is saved.`, async () => {
        await store(edit.base.value, saved.version);
        onChanged();
      });
    } catch (failed) {
      if (failed instanceof ApiError && failed.status === 412) setTheirs(await call("GET", path));
      else setError(failed);
    }
  };
  /** @param {boolean} readOnly */
  const protect = async (readOnly) => {
    await call("PUT", path, { body: { read_only: readOnly } });
    onChanged();
  };
  const toggle = async () => {
    try {
      await protect(!block.read_only);
      setError(null);
      notify(`The block ${block.label} is ${block.read_only ? "writable" : "read-only"}.`, () => protect(block.read_only));
    } catch (failed) {
      setError(failed);
    }
  };
  const remove = async () => {
    await call("DELETE", path);
    notify(`The block ${block.label} is deleted.`);
    onChanged();
  };
  return html`<section class="block" aria-label=${`Block ${block.label}`}>
    <h2><bdi>${block.label}</bdi></h2>
    <p class="faint">${block.description && html`<bdi>${block.description}</bdi> · `}version ${block.version} · <${Time} at=${block.updated_at} /> · ${lengthOf(block.value).toLocaleString("en")} of ${block.limit.toLocaleString("en")} characters${block.read_only ? " · read-only" : ""}</p>
    ${!edit && html`<div class="block-value" dir="auto">${block.value}</div>`}
    ${
      edit &&
      html`<textarea aria-label="Value" dir="auto" value=${edit.draft}
          onInput=${(/** @type {Event} */ event) => setEdit({ ...edit, draft: /** @type {HTMLTextAreaElement} */ (event.target).value })}></textarea>
        <${Length} value=${edit.draft} limit=${block.limit} />
        <${Problem} error=${error} />
        ${theirs && html`<${Conflict} before=${edit.base} theirs=${theirs} mine=${edit.draft} />`}
        <p>${
          theirs
            ? html`<button type="button" onClick=${() => {
                setEdit({ ...edit, base: theirs });
                setTheirs(null);
              }}>Keep editing mine, on their version</button> <button type="button" onClick=${() => {
                close();
                onChanged();
              }}>Take theirs</button>`
            : html`<button type="button" disabled=${lengthOf(edit.draft) > block.limit} onClick=${save}>Save</button> <button type="button" onClick=${close}>Cancel</button>`
        }</p>`
    }
    ${
      !edit &&
      html`<p class="actions">${mayWrite && !block.read_only && html`<button type="button" aria-label=${`Edit ${block.label}`} onClick=${() => setEdit({ base: block, draft: block.value })}>Edit</button>`}
        <button type="button" aria-expanded=${history} aria-label=${`History of ${block.label}`} onClick=${() => setHistory(!history)}>History</button>
        ${
          mayWrite &&
          html`<button type="button" aria-label=${`${block.read_only ? "Allow changes of" : "Make read-only:"} ${block.label}`} onClick=${toggle}>${block.read_only ? "Allow changes" : "Make read-only"}</button>
          <button type="button" class="danger" aria-label=${`Delete ${block.label}`} onClick=${() => setDeleting(true)}>Delete …</button>`
        }</p><${Problem} error=${error} />`
    }
    ${history && html`<${History} path=${path} version=${block.version} onRestore=${
      role.value === "read-only" || block.read_only
        ? null
        : async (/** @type {string} */ value) => {
            await store(value, block.version);
            onChanged();
          }
    } />`}
    ${
      deleting &&
      html`<${Confirm} label="Delete the block" word=${block.label} action="Delete" onConfirm=${remove} onClose=${() => setDeleting(false)}>
        <p>The text and its ${block.version} ${block.version === 1 ? "version" : "versions"} go. This cannot be undone.</p>
      <//>`
    }
  </section>`;
}

/** The characters of a text as the service counts them. @param {string} text */
const lengthOf = (text) => [...text].length;

/** How much of the limit of a block a text takes. @param {{ value: string, limit: number }} props */
export function Length({ value, limit }) {
  const over = lengthOf(value) - limit;
  return html`<p class=${over > 0 ? "error" : "faint"}>${lengthOf(value).toLocaleString("en")} of ${limit.toLocaleString("en")} characters${over > 0 ? `: ${over.toLocaleString("en")} too many` : ""}</p>`;
}

/** @param {{ before: BlockRecord, theirs: BlockRecord, mine: string }} props */
function Conflict({ before, theirs, mine }) {
  return html`<div class="warning" role="alert">
    <p>This block was changed in the meantime, to version ${theirs.version}. Nothing of yours is lost or saved yet.</p>
    <h2>Their change</h2><${WordDiff} before=${before.value} after=${theirs.value} />
    <h2>Your change</h2><${WordDiff} before=${before.value} after=${mine} />
  </div>`;
}

/** @param {{ path: string, version: number, onRestore: ((value: string) => Promise<void>) | null }} props */
function History({ path, version, onRestore }) {
  const asked = useRequest((signal) => call("GET", `${path}/history?limit=50`, { signal }), [path, version]);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  /** @type {Schemas["BlockHistoryPage"] | null} */
  const answer = asked.answer;
  return html`<${RequestState} error=${error || asked.error} slow=${asked.slow} />
    <ol aria-label="Versions">${answer?.versions.map(
      (each, place) => html`<li key=${each.version}><div class="faint">Version ${each.version} · <${Time} at=${each.at} /> · by <bdi>${each.actor}</bdi>
        ${onRestore && place > 0 && html` <button type="button" onClick=${() => onRestore(each.value).catch((failed) => setError(failed))}>Restore version ${each.version}</button>`}</div>
        <${WordDiff} before=${answer.versions[place + 1]?.value ?? ""} after=${each.value} /></li>`,
    )}</ol>`;
}
