import { call } from "../../api.js";
import { useState } from "../../vendor/preact-hooks.js";
import { html } from "../html.js";
import { notify } from "../notice.js";
import { Problem } from "../problem.js";
import { WordDiff } from "../word-diff.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["MessageRecord"]} Message */

/**
 * The text of a message, to be changed. A text that was changed meanwhile is shown, not overwritten.
 * @param {{ path: string, message: Message, onChanged: (changed: Message) => void, onClose: () => void }} props
 */
export function TurnEditor({ path, message, onChanged, onClose }) {
  const [base, setBase] = useState(message.content);
  const [draft, setDraft] = useState(message.content);
  const [theirs, setTheirs] = useState(/** @type {Message | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  /** @param {string} expected */
  const save = async (expected) => {
    try {
      const other = await replaced(path, expected, draft, onChanged);
      setError(null);
      setTheirs(other);
      if (other) return;
      onClose();
      notify("The message is changed.", async () => {
        if (await replaced(path, draft, expected, onChanged)) throw new Error("the message was changed again meanwhile.");
      });
    } catch (failed) {
      setError(failed);
    }
  };
  const keepMine = () => {
    setBase(theirs?.content ?? "");
    return save(theirs?.content ?? "");
  };
  return html`<textarea aria-label="Text of the message" dir="auto" value=${draft} onInput=${(/** @type {Event} */ event) => setDraft(/** @type {HTMLTextAreaElement} */ (event.target).value)}></textarea>
    <${Problem} error=${error} />
    ${
      theirs
        ? html`<div class="warning" role="alert"><p>This message was changed while you wrote. Nothing is lost: choose one, or go on writing above.</p>
            <h4>Their change</h4><${WordDiff} before=${base} after=${theirs.content} /><h4>Your change</h4><${WordDiff} before=${base} after=${draft} /></div>
            <p><button type="button" onClick=${keepMine}>Keep mine</button><button type="button" onClick=${() => {
              onChanged(theirs);
              onClose();
            }}>Keep theirs</button></p>`
        : html`<p><button type="button" disabled=${!draft.trim() || draft === base} onClick=${() => save(base)}>Save</button><button type="button" onClick=${onClose}>Cancel</button></p>`
    }`;
}

/**
 * Set the text of a message, unless it is no longer the expected one.
 * @param {string} path
 * @param {string} expected
 * @param {string} content
 * @param {(changed: Message) => void} onChanged
 * @returns {Promise<Message | null>} The message as others changed it; null if the new text is stored.
 */
async function replaced(path, expected, content, onChanged) {
  /** @type {Message} */
  const now = await call("GET", path);
  if (now.content !== expected) return now;
  onChanged(await call("PATCH", path, { body: { content } }));
  return null;
}
