import { useEffect, useState } from "../../vendor/preact-hooks.js";
import { ChangedMeanwhile, changeMemories, factsOf, replaceExpected } from "../changes.js";
import { html } from "../html.js";
import { Problem } from "../problem.js";
import { noteUnsaved } from "../unsaved.js";

/** @import { Memory } from "../changes.js" */

const MAX_FACTS = 50;
const MAX_CHARS = 2000;

/** @param {Memory} memory */
const textsOf = (memory) => factsOf(memory).map(({ text }) => text);

/**
 * @param {string[]} one
 * @param {string[]} other
 */
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/**
 * Set the facts of a memory: it shows at once, with an undo; those that someone else changed are not overwritten.
 * @param {number} id
 * @param {string[]} before
 * @param {string[]} facts
 * @param {string} [said]
 * @returns {Promise<unknown>}
 */
const setFacts = (id, before, facts, said) =>
  changeMemories([id], {
    change: { facts },
    send: (at) => replaceExpected(id, (now) => same(textsOf(now), before), { facts }, at),
    said,
    undo: () => setFacts(id, facts, before),
  });

/** The statements of a memory, by each of which a search finds it. @param {{ memory: Memory, writes: boolean }} props */
export function Facts({ memory, writes }) {
  const [edited, setEdited] = useState(/** @type {{ before: string[], texts: string[], error: unknown } | null} */ (null));
  const facts = factsOf(memory);
  const before = textsOf(memory);
  useEffect(() => {
    noteUnsaved("facts", edited !== null && !same(edited.texts.filter((text) => text.trim()), edited.before));
    return () => noteUnsaved("facts", false);
  }, [edited]);
  if (edited) return html`<h2>Facts</h2><${FactsEditor} edited=${edited} onChange=${setEdited} onSave=${() => {
    const texts = [...new Set(edited.texts.map((text) => text.trim()).filter(Boolean))];
    setEdited(null);
    if (!same(texts, edited.before))
      setFacts(memory.id, edited.before, texts, "Facts changed.").catch((error) =>
        // The next attempt replaces theirs, which are shown now; another refusal is shown by the drawer.
        setEdited(error instanceof ChangedMeanwhile ? { before: textsOf(error.theirs), texts: edited.texts, error: `${error.message} It has these facts now: ${textsOf(error.theirs).join(" · ") || "none"}` } : edited),
      );
  }} />`;
  if (!facts.length && !writes) return null;
  return html`<h2>Facts</h2>
    ${facts.length > 0 && html`<ul class="facts">${facts.map(({ id, text, made_by }) => html`<li key=${id || text} dir="auto">${text} <span class="faint">${made_by}</span></li>`)}</ul>`}
    ${writes && html`<p><button type="button" onClick=${() => setEdited({ before, texts: [...before, ""], error: null })}>${facts.length ? "Edit the facts" : "Add facts"}</button></p>`}`;
}

/** @param {{ edited: { before: string[], texts: string[], error: unknown }, onChange: (edited: any) => void, onSave: () => void }} props */
function FactsEditor({ edited, onChange, onSave }) {
  const { texts } = edited;
  /** @param {string[]} now */
  const set = (now) => onChange({ ...edited, texts: now });
  return html`<${Problem} error=${edited.error} />
    <form onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      onSave();
    }}>
      ${texts.map(
        (text, place) => html`<div key=${place} class="fact">
        <textarea rows="2" aria-label=${`Fact ${place + 1}`} maxlength=${MAX_CHARS} dir="auto" value=${text}
          onInput=${(/** @type {Event} */ event) => set(texts.with(place, /** @type {HTMLTextAreaElement} */ (event.target).value))}></textarea>
        <button type="button" aria-label=${`Remove fact ${place + 1}`} onClick=${() => set(texts.toSpliced(place, 1))}>×</button></div>`,
      )}
      <p><button type="button" disabled=${texts.length >= MAX_FACTS} onClick=${() => set([...texts, ""])}>Another fact</button>
        <button>Save the facts</button>
        <button type="button" onClick=${() => onChange(null)}>Cancel</button></p>
    </form>`;
}
