import { useState } from "../vendor/preact-hooks.js";
import { factsOf, reason, replaceText } from "./changes.js";
import { html } from "./html.js";
import { notify } from "./notice.js";
import { WordDiff } from "./word-diff.js";

/** @import { Memory } from "./changes.js" */

const CHANGED_MEANWHILE = "The text was changed again meanwhile; the history shows both texts.";

/**
 * The text of a memory, to be changed. A text that somebody else changed meanwhile is shown, not overwritten.
 * @param {{ memory: Memory, onClose: () => void }} props
 */
export function Editor({ memory, onClose }) {
  const [draft, setDraft] = useState(memory.text);
  const [base, setBase] = useState({ text: memory.text, facts: factsOf(memory).map(({ text }) => text) });
  const [theirs, setTheirs] = useState(/** @type {string | null} */ (null));
  const [error, setError] = useState("");
  /** @param {{ text: string, facts: string[] }} before */
  const save = async (before) => {
    try {
      const other = await replaceText(memory.id, before.text, draft);
      setError("");
      setTheirs(other);
      if (other !== null) return;
      notify("Text changed.", async () => {
        if ((await replaceText(memory.id, draft, before.text, before.facts)) !== null) throw new Error(CHANGED_MEANWHILE);
      });
      onClose();
    } catch (failed) {
      setError(reason(failed));
    }
  };
  const overwrite = () => {
    const before = { text: theirs ?? "", facts: [] };
    setBase(before);
    return save(before);
  };
  return html`${error && html`<p class="error" role="alert">${error}</p>`}
    <textarea aria-label="Text" dir="auto" value=${draft}
      onInput=${(/** @type {InputEvent} */ event) => setDraft(/** @type {HTMLTextAreaElement} */ (event.target).value)}></textarea>
    ${
      theirs === null
        ? html`<p><button type="button" disabled=${!draft.trim()} onClick=${() => save(base)}>Save</button>
            <button type="button" onClick=${onClose}>Cancel</button></p>`
        : html`<div class="conflict" role="alert"><p>This memory was changed while you wrote. Nothing is lost: choose one, or go on writing above.</p></div>
          <h2>Their change</h2><${WordDiff} before=${base.text} after=${theirs} />
          <h2>Your change</h2><${WordDiff} before=${base.text} after=${draft} />
          <p><button type="button" onClick=${overwrite}>Keep mine</button>
            <button type="button" onClick=${onClose}>Keep theirs</button></p>`
    }`;
}
