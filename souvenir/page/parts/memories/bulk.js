import { here } from "../../api.js";
import { role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { cancel, changeMany, deleteMany, forgetUnfinished, goOn, running, STEP, unfinished } from "./bulk-run.js";
import { Confirm } from "../confirm.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { Problem } from "../problem.js";

/** @import { BulkChange, Selection } from "./bulk-run.js" */
/** @import { Choice } from "./list.js" */

/**
 * Actions on several memories, with undo of exactly what they changed; deleting takes a typed confirmation.
 * @param {{ choice: Choice, total: number, filters: string, ceiling: number | null }} props
 */
export function Bulk({ choice, total, filters, ceiling }) {
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const { chosen, every, stop } = choice;
  const count = every ? total : chosen.length;
  const said = counted(count, "memory", "memories");
  const busy = running.value !== null || !count;
  const archived = new URLSearchParams(filters).has("include_archived");
  /** @type {Selection} */
  const selection = every ? { filters, ceiling, total } : { chosen };
  /**
   * @param {BulkChange} change
   * @param {string} doing
   * @param {string} done
   */
  const act = async (change, doing, done) => {
    try {
      setError(null);
      await changeMany(selection, change, doing, done);
      stop();
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<div class="bulk" role="group" aria-label="Actions on several memories">
    <p role="status">${said} chosen${every ? ": all that match." : ". Click rows, or with Shift all rows in between."}
      ${!every && chosen.length < total && html` <button type="button" onClick=${choice.chooseEvery}>Choose all ${total.toLocaleString("en")} that match</button>`}</p>
    <${Problem} error=${error} />
    <div class="fields">
      <button type="button" disabled=${busy} onClick=${() => act({ archived: true }, "Archiving", "% archived.")}>Archive</button>
      ${archived && html`<button type="button" disabled=${busy} onClick=${() => act({ archived: false }, "Bringing back", "% brought back.")}>Bring back</button>`}
      <button type="button" disabled=${busy} onClick=${() => act({ pinned: true }, "Pinning", "% pinned.")}>Pin</button>
      <button type="button" disabled=${busy} onClick=${() => act({ pinned: false }, "Unpinning", "% unpinned.")}>Unpin</button>
      <${Named} label="Tag" max=${100} busy=${busy} acts=${[
        ["Add the tag", (/** @type {string} */ tag) => act({ add_tags: [tag] }, "Adding the tag", "The tag is added to %.")],
        ["Remove the tag", (/** @type {string} */ tag) => act({ remove_tags: [tag] }, "Removing the tag", "The tag is removed from %.")],
      ]} />
      <${Named} label="Source" max=${500} busy=${busy} acts=${[
        ["Move", (/** @type {string} */ source) => act({ source }, "Moving", `% moved to ${source}.`)],
      ]} />
      <button type="button" class="danger" disabled=${busy} onClick=${() => setAsking(true)}>Delete …</button>
      <button type="button" onClick=${stop}>Done</button>
    </div>
    ${
      asking &&
      html`<${Confirm} label=${`Delete ${said}`} word=${`delete ${count}`} action="Delete" onClose=${() => setAsking(false)}
        onConfirm=${() => {
          // The progress is shown by the view, with a way to cancel it.
          deleteMany(selection).then(stop, setError);
          return Promise.resolve();
        }}>
        <p>Their texts, facts and links are deleted and cannot be brought back here; only a backup made before still has them. Pinned memories stay.</p>
      <//>`
    }
  </div>`;
}

/**
 * A name, and what can be done with it.
 * @param {{ label: string, max: number, busy: boolean, acts: [name: string, act: (value: string) => void][] }} props
 */
function Named({ label, max, busy, acts }) {
  const [value, setValue] = useState("");
  const name = value.trim();
  return html`<form class="named" onSubmit=${(/** @type {Event} */ event) => {
    event.preventDefault();
    if (name && !busy) acts[0][1](name);
  }}>
    <input aria-label=${label} placeholder=${label} maxlength=${max} autocomplete="off" dir="auto" value=${value}
      onInput=${(/** @type {Event} */ event) => setValue(/** @type {HTMLInputElement} */ (event.target).value)} />
    ${acts.map(([said, act], place) => html`<button key=${said} type=${place ? "button" : "submit"} disabled=${busy || !name} onClick=${place ? () => act(name) : undefined}>${said}</button>`)}
  </form>`;
}

/** The progress of a change of many memories, or how far an interrupted one came. */
export function Running() {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const run = running.value;
  const left = unfinished.value;
  if (run && run.total > STEP) {
    const perSecond = run.done / Math.max(0.1, (Date.now() - run.startedAt) / 1000);
    const rest = perSecond ? ` · ${Math.round(perSecond).toLocaleString("en")} a second, ${counted(Math.ceil((run.total - run.done) / perSecond), "second", "seconds")} left` : "";
    return html`<div class="running"><label>${run.doing} <progress max=${run.total} value=${run.done}></progress></label>
      <span class="faint">${run.done.toLocaleString("en")} of ${run.total.toLocaleString("en")}${rest}</span>
      <button type="button" disabled=${run.cancelled} onClick=${cancel}>Cancel</button></div>`;
  }
  if (run || !left || left.namespace !== here().namespace || role.value === "read-only") return html`<${Problem} error=${error} />`;
  return html`<div class="running" role="status">A change stopped after ${left.done.toLocaleString("en")} of ${counted(left.total, "memory", "memories")}: ${left.doing}
    <button type="button" onClick=${() => goOn(left).then(() => setError(null), setError)}>Continue</button>
    <button type="button" onClick=${forgetUnfinished}>Leave it</button></div>`;
}
