import { call } from "../../api.js";
import { signal } from "../../vendor/preact-signals.js";
import { ChangedMeanwhile, changeMemories, changeText } from "../changes.js";
import { html } from "../html.js";
import { Problem } from "../problem.js";
import { StoredText } from "../text.js";
import { noteUnsaved } from "../unsaved.js";
import { WordDiff } from "../word-diff.js";

/** @import { Schemas } from "../../api.js" */
/** @import { Memory } from "../changes.js" */
/** @typedef {{ base: string, text: string, replaces: boolean, theirs: string | null, error: unknown }} Draft `base` is the text that it changes. */

export const ABOUT_EDIT = "Edit corrects this memory; its history keeps the old text.";
export const ABOUT_REPLACE = "Replace stores a new memory and keeps this one as an earlier version.";

/** What is being written, by memory: it stays when the drawer is closed, and comes back if the service refuses it. */
const drafts = signal(/** @type {ReadonlyMap<number, Draft>} */ (new Map()));

/** @param {number} id */
export const draftOf = (id) => drafts.value.get(id) ?? null;

/**
 * @param {number} id
 * @param {Draft | null} draft Null ends it.
 */
function setDraft(id, draft) {
  const others = [...drafts.value].filter(([other]) => other !== id);
  drafts.value = new Map(draft ? [...others, [id, draft]] : others);
  noteUnsaved("texts", [...drafts.value.values()].some(({ base, text }) => text !== base));
}

/**
 * Begin to write another text, which changes the memory or replaces it.
 * @param {Memory} memory
 * @param {boolean} replaces
 */
export const write = (memory, replaces) => setDraft(memory.id, { base: memory.text, text: memory.text, replaces, theirs: null, error: null });

/**
 * Store a memory that replaces another, which is kept in the archive; an undo deletes the new one.
 * @param {Memory} memory
 * @param {string} text
 * @param {(from: number, to: number) => void} onOpen Opens another memory instead of one that is open.
 */
async function supersede(memory, text, onOpen) {
  /** @type {Schemas["SupersedeResponse"]} */
  const made = await changeMemories([memory.id], {
    change: { archived: true },
    send: (at) => call("POST", `memory/${memory.id}/supersede`, { body: { text }, at }),
    made: ({ new_id }) => [new_id],
    said: "Replaced; the old text is kept among its versions.",
    undo: ({ new_id }) =>
      changeMemories([memory.id, new_id], {
        change: { archived: false },
        send: async () => {
          /** @type {Memory} */
          const now = await call("GET", `memory/${new_id}`);
          if (now.text !== text) throw new ChangedMeanwhile(now);
          await call("DELETE", `memory/${new_id}`);
          await call("PATCH", `memory/${memory.id}`, { body: { archived: false } });
          onOpen(new_id, memory.id);
        },
      }),
  });
  onOpen(memory.id, made.new_id);
}

/**
 * The text of a memory, to be changed or replaced. A text that someone else changed meanwhile is shown, not overwritten.
 * @param {{ memory: Memory, draft: Draft, onOpen: (from: number, to: number) => void }} props `onOpen` opens the memory that replaces it.
 */
export function Editor({ memory, draft, onOpen }) {
  const { base, text, replaces, theirs, error } = draft;
  const close = () => setDraft(memory.id, null);
  /** @param {string} expected */
  const save = (expected) => {
    close();
    const sent = replaces ? supersede(memory, text, onOpen) : changeText(memory, expected, text, "Text changed.");
    sent.catch((/** @type {unknown} */ failed) =>
      setDraft(memory.id, failed instanceof ChangedMeanwhile ? { ...draft, base: expected, theirs: failed.theirs.text, error: null } : { ...draft, error: failed }),
    );
  };
  return html`<${Problem} error=${error} />
    <p class="faint">${replaces ? ABOUT_REPLACE : ABOUT_EDIT}</p>
    <textarea aria-label=${replaces ? "Text of the replacement" : "Text"} dir="auto" value=${text}
      onInput=${(/** @type {InputEvent} */ event) => setDraft(memory.id, { ...draft, text: /** @type {HTMLTextAreaElement} */ (event.target).value })}></textarea>
    ${
      theirs === null
        ? html`<p><button type="button" disabled=${!text.trim() || (replaces && text === base)} onClick=${() => save(base)}>${replaces ? "Replace" : "Save"}</button>
            <button type="button" onClick=${close}>Cancel</button></p>`
        : html`<div class="conflict" role="alert"><p>This memory was changed while you wrote. Nothing is lost: choose one, or go on writing above.</p></div>
          <h2>Before</h2><${StoredText} text=${base} />
          <h2>Their change</h2><${WordDiff} before=${base} after=${theirs} />
          <h2>Your change</h2><${WordDiff} before=${base} after=${text} />
          <p><button type="button" disabled=${!text.trim()} onClick=${() => save(theirs)}>Keep mine</button>
            <button type="button" onClick=${close}>Keep theirs</button></p>`
    }`;
}
