// One finding of an extraction: what is or would be done, and the words that it came from.
import { html } from "../html.js";
import { Quote } from "../quote.js";
import { MemoryLink, StoredText } from "../text.js";
import { WordDiff } from "../word-diff.js";

/** @import { Schemas } from "../../api.js" */
/**
 * @typedef {{ action: string, ordinal: number, text?: string, new_text?: string, reason?: string, error?: string,
 *   id?: number, new_id?: number, old_id?: number, existing_id?: number, conflicts_with?: number, committed?: string, mode?: string }} Action
 */

/** @type {Record<string, [done: string, would: string]>} */
const WORDS = {
  add: ["Added", "Add"],
  fallback_add: ["Added word for word", "Add"],
  update: ["Updated", "Update"],
  delete: ["Archived", "Archive"],
  conflict: ["Added, and contradicts a memory", "Add, and flag a contradiction"],
  noop: ["Known already", "Known already"],
  skipped: ["Left out", "Left out"],
  error: ["Not understood", "Not understood"],
  forgotten: ["Forgotten", "Forgotten"],
};

/** @type {Record<string, string>} */
const REASONS = {
  repeated: "it was found before in this conversation",
  over_limit: "there are more facts than an extraction may find",
  recalled: "it only repeats what was recalled from the memory",
  protected: "the memory is pinned, protected or more trusted",
  changed_first: "another fact of this extraction changed the memory first",
  changed_meanwhile: "the memory was changed in the meantime",
  not_living: "the memory is archived",
  forgotten: "the memory was deleted",
  nothing_new: "a memory says it already",
  committed: "it was committed by another extraction",
};

/** The kind of an action, whether it is done or planned. @param {Action} action */
export const kindOf = (action) => action.action.toLowerCase();

/** The memory that an action is about, other than the one it adds. @param {Action} action */
export const targetOf = (action) => action.old_id ?? action.existing_id ?? action.conflicts_with ?? null;

/** The text that an action stores. @param {Action} action */
export const textOf = (action) => action.new_text ?? action.text ?? "";

/** The kinds that change memories. */
export const CHANGING = ["add", "fallback_add", "update", "delete", "conflict"];

/** What is stored without a model has the words of its turn, unless the user wrote others. The service's reason does not tell these apart. */
const VERBATIM = /^Stored as it was said/;

/** @param {string} text */
const spaced = (text) => text.replace(/\s+/g, " ").trim();

/**
 * What is or would be done.
 * @param {{ action: Action, would: boolean, undone?: boolean, reworded?: boolean, quote?: Schemas["FactQuote"] }} props
 *     `reworded` if the user writes another text, which `quote` shows of a stored one.
 */
export function Verdict({ action, would, undone = false, reworded = false, quote }) {
  const kind = kindOf(action);
  const verbatim = VERBATIM.test(action.reason ?? "");
  const same = quote ? spaced(quote.words) === spaced(textOf(action)) : null;
  const words = doneOf(action, would, verbatim ? same : null);
  const taken = undone && CHANGING.includes(kind);
  const reason = action.error ?? (action.reason && (verbatim ? verbatimReason(would, reworded, same) : (REASONS[action.reason] ?? action.reason)));
  const id = taken ? undefined : (action.new_id ?? action.id);
  const target = targetOf(action);
  if (taken) return html`<strong>Was ${kind === "conflict" ? "added" : words.toLowerCase()}, undone</strong>${target !== null && html` <${MemoryLink} id=${target} />`}`;
  return html`<strong>${words}</strong>${target !== null && html` <${MemoryLink} id=${target} />`}${id !== undefined && html` as <${MemoryLink} id=${id} />`}
    ${reason && html` <span class="faint" dir="auto">${reason}</span>`}`;
}

/**
 * @param {Action} action
 * @param {boolean} would
 * @param {boolean | null} same Whether the text is that of its turn; null if it is not known.
 */
function doneOf(action, would, same) {
  const kind = kindOf(action);
  if (kind === "fallback_add" && !would && !same) return same === null ? "Added" : "Added, reworded";
  return WORDS[kind]?.[would ? 1 : 0] ?? action.action;
}

/**
 * @param {boolean} would
 * @param {boolean} reworded
 * @param {boolean | null} same
 */
function verbatimReason(would, reworded, same) {
  if (would) return reworded ? "" : "would be stored word for word, since no language model is set up";
  return same ? "since no language model is set up" : "";
}

/**
 * The text of an action: of an update with its change, of a deletion what goes.
 * @param {{ action: Action, text: string, target: string | undefined }} props `text` is what would be stored; `target` the text of the memory that it is about, if it is known.
 */
export function Change({ action, text, target }) {
  switch (kindOf(action)) {
    case "delete":
      return html`${target !== undefined && html`<div class="diff"><del><${StoredText} text=${target} /></del></div>`}
        ${text && html`<div class="faint">because of: <span dir="auto">${text}</span></div>`}`;
    case "update":
      return target === undefined ? html`<${StoredText} text=${text} />` : html`<${WordDiff} before=${target} after=${text} />`;
    case "conflict":
      return html`<${StoredText} text=${text} />${target !== undefined && html`<div class="faint">contradicts</div><${StoredText} text=${target} />`}`;
    case "noop":
      return html`<${StoredText} text=${text} />${target !== undefined && target !== text && html`<div class="faint">is said by</div><${StoredText} text=${target} />`}`;
    case "forgotten":
      return html`<p class="faint">A memory that it was about was deleted, so nothing of it is kept.</p>`;
    default:
      return html`<${StoredText} text=${text} />`;
  }
}

/**
 * A finding next to the words that it came from.
 * @param {{ quote: Schemas["FactQuote"] | undefined, children?: unknown }} props
 */
export function Finding({ quote, children }) {
  return html`<li class="proposal"><div>${children}</div>
    <div>${quote ? html`<${Quote} quote=${quote} />` : html`<p class="faint">Its words in the conversation are not known.</p>`}</div></li>`;
}
