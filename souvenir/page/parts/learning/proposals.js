// The proposals of a dry run, or of an extraction that waits for approval: approve, reword or reject each, and commit.
import { call, here } from "../../api.js";
import { address, go, role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { signal } from "../../vendor/preact-signals.js";
import { changes } from "../changes.js";
import "../focus.js";
import { html } from "../html.js";
import { Change, CHANGING, Finding, kindOf, targetOf, textOf, Verdict } from "./action.js";
import { undoExtraction } from "./follow.js";
import { notify } from "../notice.js";
import { Problem } from "../problem.js";
import { useRequest } from "../request.js";
import { WordDiff } from "../word-diff.js";

/** @import { Schemas } from "../../api.js" */
/** @import { Action } from "./action.js" */
/** @typedef {{ approved?: boolean, text?: string, open?: boolean }} Choice `open` while the field of the text is shown. */

const NO_SOURCE = "extract";

/** The choices of each opened extraction, which stay when another view is shown. @type {import("../../vendor/preact-signals.js").Signal<Record<string, Record<number, Choice>>>} */
const choices = signal({});

/**
 * @param {{ job: Schemas["ExtractJob"], actions: Action[], quotes: Map<number, Schemas["FactQuote"]>, texts: Map<number, string> }} props
 */
export function Proposals({ job, actions, quotes, texts }) {
  const writes = role.value !== "read-only";
  const taken = useTaken(actions);
  const proposals = actions.filter((action) => CHANGING.includes(kindOf(action)));
  const others = actions.filter((action) => !CHANGING.includes(kindOf(action)));
  const free = proposals.filter((action) => !taken.has(action.ordinal));
  const chosenOf = choices.value[job.job_id] ?? {};
  /** What is deleted is chosen on purpose. @param {Action} action */
  const approved = (action) => chosenOf[action.ordinal]?.approved ?? kindOf(action) !== "delete";
  /** @param {Action[]} changed @param {Choice} choice */
  const choose = (changed, choice) => {
    const next = Object.fromEntries(changed.map(({ ordinal }) => [ordinal, { ...chosenOf[ordinal], ...choice }]));
    choices.value = { ...choices.value, [job.job_id]: { ...chosenOf, ...next } };
  };
  const chosen = free.filter(approved);
  return html`${writes && free.length > 0 && html`<p class="actions"><button type="button" onClick=${() => choose(free, { approved: true })}>Approve all</button>
      <button type="button" onClick=${() => choose(free, { approved: false })}>Reject all</button></p>`}
    ${!proposals.length && html`<p>Nothing would be changed.</p>`}
    <ul class="proposals">${proposals.map((action) => {
      const target = texts.get(targetOf(action) ?? 0);
      const quote = quotes.get(action.ordinal);
      const by = taken.get(action.ordinal);
      if (!writes || by)
        return html`<${Finding} key=${action.ordinal} quote=${quote}><p><${Verdict} action=${action} would=${true} /></p>
          ${by && html`<p class="faint">Committed by <a href=${address("learning", { job: by })}>another extraction</a>.</p>`}
          <${Change} action=${action} text=${textOf(action)} target=${target} /><//>`;
      return html`<${Finding} key=${action.ordinal} quote=${quote}>
        <${Proposal} action=${action} target=${target} approved=${approved(action)} text=${chosenOf[action.ordinal]?.text} open=${chosenOf[action.ordinal]?.open ?? false} onChange=${(/** @type {Choice} */ choice) => choose([action], choice)} />
      <//>`;
    })}</ul>
    ${
      others.length > 0 &&
      html`<details><summary>${others.length} more that would change nothing</summary><ul class="proposals">${others.map(
        (action) => html`<${Finding} key=${action.ordinal} quote=${quotes.get(action.ordinal)}><p><${Verdict} action=${action} would=${true} /></p>
          <${Change} action=${action} text=${textOf(action)} target=${texts.get(targetOf(action) ?? 0)} /><//>`,
      )}</ul></details>`
    }
    ${writes && free.length > 0 && html`<${Commit} job=${job} chosen=${chosen} of=${free.length} texts=${chosenOf} />`}`;
}

/**
 * @param {{ action: Action, target: string | undefined, approved: boolean, text: string | undefined, open: boolean, onChange: (choice: Choice) => void }} props `text` is what the user wrote instead.
 */
function Proposal({ action, target, approved, text, open, onChange }) {
  const original = textOf(action);
  const about = `${action.ordinal + 1}`;
  const reworded = text !== undefined && text !== original;
  const updates = kindOf(action) === "update";
  return html`<p><label><input type="checkbox" checked=${approved} aria-label=${`${approved ? "Approved" : "Rejected"}: proposal ${about}`}
        onChange=${(/** @type {Event} */ event) => onChange({ approved: /** @type {HTMLInputElement} */ (event.target).checked })} />
        <span class=${approved ? "" : "faint"}>${approved ? "Approved" : "Rejected"}</span></label> <${Verdict} action=${action} would=${true} reworded=${reworded} /></p>
    <div class=${approved ? "" : "rejected"}>${reworded && !updates ? html`<${WordDiff} before=${original} after=${text} />` : html`<${Change} action=${action} text=${text ?? original} target=${target} />`}</div>
    ${reworded && updates && html`<p class="faint">Proposed: <span dir="auto">${original}</span></p>`}
    ${
      kindOf(action) !== "delete" &&
      (!open
        ? html`<p><button type="button" aria-label=${`Reword proposal ${about}`} onClick=${() => onChange({ text: text ?? original, open: true, approved: true })}>Reword</button></p>`
        : html`<p><label>Text of proposal ${about}<br /><textarea class="conversation" dir="auto" value=${text}
            onInput=${(/** @type {Event} */ event) => onChange({ text: /** @type {HTMLTextAreaElement} */ (event.target).value })}></textarea></label></p>
          <p class="actions"><button type="button" aria-label=${`Done with proposal ${about}`} onClick=${() => onChange({ open: false })}>Done</button>
            <button type="button" onClick=${() => onChange({ text: undefined, open: false })}>Back to the proposed text</button></p>`)
    }`;
}

/**
 * @param {{ job: Schemas["ExtractJob"], chosen: Action[], of: number, texts: Record<number, Choice> }} props
 */
function Commit({ job, chosen, of, texts }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const empty = chosen.find(({ ordinal }) => texts[ordinal]?.text?.trim() === "");
  /** @param {Event} event */
  const commit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    const at = here();
    try {
      const actions = chosen.map((action) => toCommit(action, job.job_id, texts[action.ordinal]?.text));
      const done = await call("POST", "memory/extract/commit", { body: { actions, source: job.source || NO_SOURCE } });
      changes.value += 1;
      if (done.approval) notify("Not applied yet: it removes more memories than an extraction may without approval.");
      else if (done.stored_count !== undefined) notify(`${chosen.length} of ${of} committed.`, () => undoExtraction(done.job_id), at);
      go("learning", { job: done.job_id });
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  return html`<form class="commit" onSubmit=${commit}><p role="status">${chosen.length} of ${of} chosen</p>
    ${empty && html`<p class="error">Proposal ${empty.ordinal + 1} has no text: write one, or reject it.</p>`}
    <${Problem} error=${error} />
    <p><button disabled=${busy || !chosen.length || Boolean(empty)}>${busy ? "Committing …" : `Commit ${chosen.length} of ${of}`}</button></p></form>`;
}

/**
 * @param {Action} action
 * @param {string} job
 * @param {string | undefined} text What the user wrote instead.
 */
function toCommit(action, job, text) {
  const { ordinal, old_id, existing_id, conflicts_with } = action;
  const kept = { approved: true, action: kindOf(action), job_id: job, ordinal, old_id, existing_id, conflicts_with };
  if (text === undefined || text === textOf(action)) return kept;
  return kindOf(action) === "update" ? { ...kept, new_text: text } : { ...kept, text };
}

/**
 * The proposals that a commit has applied or applies, and its extraction. An undone commit frees them again.
 * @param {Action[]} actions
 * @returns {Map<number, string>}
 */
function useTaken(actions) {
  const jobs = [...new Set(actions.map(({ committed }) => committed).filter((id) => id !== undefined))];
  const asked = useRequest(
    jobs.length ? (signal) => Promise.all(jobs.map((id) => call("GET", `memory/extract/${id}`, { signal, expected: 404 }))) : null,
    [jobs.join(), changes.value],
  );
  const free = new Set(jobs.filter((_, place) => isFree(asked.answer?.[place])));
  return new Map(actions.flatMap(({ ordinal, committed }) => (committed && !free.has(committed) ? [[ordinal, committed]] : [])));
}

/** @param {Schemas["ExtractJob"] | undefined} commit What is answered of it; nothing while it is not known. */
const isFree = (commit) => commit !== undefined && (!commit.job_id || commit.undone || ["failed", "cancelled"].includes(commit.status));
