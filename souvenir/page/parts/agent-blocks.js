import { ApiError, call } from "../api.js";
import { role } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { notify } from "./notice.js";
import { RequestState, useRequest } from "./request.js";
import { Time } from "./text.js";
import { WordDiff } from "./word-diff.js";

/** @import { Schemas } from "../api.js" */
/** @typedef {Schemas["MemoryBlock"]} Block */

/**
 * The memory blocks of an agent, which are in each of its contexts.
 * @param {{ agent: string }} props
 */
export function Blocks({ agent }) {
  const path = `memory-blocks/${encodeURIComponent(agent)}`;
  const asked = useRequest((signal) => call("GET", path, { signal }), [path]);
  /** @type {Block[] | null} */
  const blocks = asked.answer;
  return html`<${RequestState} error=${asked.error} slow=${asked.slow && !blocks} />
    ${blocks && !blocks.length && html`<p>No block yet. A block is a short text that is in every context: who the user is, how the agent speaks.</p>`}
    ${blocks?.map((block) => html`<${OneBlock} key=${block.id} path=${`${path}/${encodeURIComponent(block.label)}`} block=${block} onChanged=${asked.again} />`)}
    ${blocks && role.value !== "read-only" && html`<${NewBlock} agent=${agent} onMade=${asked.again} />`}`;
}

/** @param {{ path: string, block: Block, onChanged: () => void }} props */
function OneBlock({ path, block, onChanged }) {
  const [edit, setEdit] = useState(/** @type {{ base: Block, draft: string } | null} */ (null));
  const [theirs, setTheirs] = useState(/** @type {Block | null} */ (null));
  const [error, setError] = useState("");
  const [history, setHistory] = useState(false);
  /**
   * @param {string} value
   * @param {number} version
   */
  const store = (value, version) => call("PUT", path, { body: { value }, version });
  const close = () => {
    setEdit(null);
    setTheirs(null);
    setError("");
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
      else setError(failed instanceof TypeError ? "Not saved: the service cannot be reached." : /** @type {Error} */ (failed).message);
    }
  };
  return html`<section class="block" aria-label=${`Block ${block.label}`}>
    <h2><bdi>${block.label}</bdi></h2>
    <p class="faint">${block.description && html`<bdi>${block.description}</bdi> · `}version ${block.version} · <${Time} at=${block.updated_at} /> · ${block.value.length.toLocaleString("en")} of ${block.limit.toLocaleString("en")} characters${block.read_only ? " · read-only" : ""}</p>
    ${!edit && html`<div class="block-value" dir="auto">${block.value}</div>`}
    ${
      edit &&
      html`<textarea aria-label="Value" dir="auto" maxlength=${block.limit} value=${edit.draft}
          onInput=${(/** @type {Event} */ event) => setEdit({ ...edit, draft: /** @type {HTMLTextAreaElement} */ (event.target).value })}></textarea>
        ${error && html`<p class="error" role="alert">${error}</p>`}
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
            : html`<button type="button" onClick=${save}>Save</button> <button type="button" onClick=${close}>Cancel</button>`
        }</p>`
    }
    ${
      !edit &&
      html`<p>${role.value !== "read-only" && !block.read_only && html`<button type="button" aria-label=${`Edit ${block.label}`} onClick=${() => setEdit({ base: block, draft: block.value })}>Edit</button> `}
        <button type="button" aria-expanded=${history} aria-label=${`History of ${block.label}`} onClick=${() => setHistory(!history)}>History</button></p>`
    }
    ${history && html`<${History} path=${path} version=${block.version} onRestore=${
      role.value === "read-only" || block.read_only
        ? null
        : async (/** @type {string} */ value) => {
            await store(value, block.version);
            onChanged();
          }
    } />`}
  </section>`;
}

/** @param {{ before: Block, theirs: Block, mine: string }} props */
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
  const [error, setError] = useState("");
  /** @type {Schemas["BlockHistoryPage"] | null} */
  const answer = asked.answer;
  return html`<${RequestState} error=${error || asked.error} slow=${asked.slow} />
    <ol aria-label="Versions">${answer?.versions.map(
      (each, place) => html`<li key=${each.version}><div class="faint">Version ${each.version} · <${Time} at=${each.at} /> · by <bdi>${each.actor}</bdi>
        ${onRestore && place > 0 && html` <button type="button" onClick=${() => onRestore(each.value).catch((failed) => setError(failed.message))}>Restore version ${each.version}</button>`}</div>
        <${WordDiff} before=${answer.versions[place + 1]?.value ?? ""} after=${each.value} /></li>`,
    )}</ol>`;
}

/** @param {{ agent: string, onMade: () => void }} props */
function NewBlock({ agent, onMade }) {
  const [error, setError] = useState("");
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const fields = new FormData(form);
    try {
      await call("POST", "memory-blocks", { body: { agent_name: agent, label: fields.get("label"), value: fields.get("value") } });
      form.reset();
      setError("");
      onMade();
    } catch (failed) {
      setError(/** @type {Error} */ (failed).message);
    }
  };
  return html`<form class="fields" aria-label="New block" onSubmit=${submit}>
      <label>Label of a new block <input name="label" required autocomplete="off" /></label>
      <label>Text <input name="value" size="40" dir="auto" autocomplete="off" /></label>
      <button>Add</button>
    </form>${error && html`<p class="error" role="alert">${error}</p>`}`;
}
