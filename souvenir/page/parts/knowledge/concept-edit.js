import { useState } from "../../vendor/preact-hooks.js";
import { nameOf, patchConcept } from "./concept-names.js";
import { html } from "../html.js";
import { Find } from "./find.js";
import { notify } from "../notice.js";
import { Problem } from "../problem.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["ConceptDetailsRecord"]} Concept */

/** @param {string} text */
const lines = (text) => [...new Set(text.split("\n").map((name) => name.trim()).filter(Boolean))];

/**
 * The name, kind, description and other names of a concept, to be changed with undo.
 * @param {{ agent: string, concept: Concept, onChanged: () => void, onClose: () => void }} props `agent` is encoded for a path.
 */
export function ConceptEditor({ agent, concept, onChanged, onClose }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const stated = concept.described_by === "caller" ? (concept.description ?? "") : "";
  /** @param {SubmitEvent} event */
  const save = async (event) => {
    event.preventDefault();
    const fields = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const text = (/** @type {string} */ name) => String(fields.get(name)).replaceAll("\r\n", "\n");
    /** @type {Record<string, string>} */
    const before = { name: concept.name, kind: concept.kind, description: stated, aliases: concept.aliases.join("\n") };
    const changed = Object.keys(before).filter((name) => text(name) !== before[name]);
    if (!changed.length) return onClose();
    /** @param {(name: string) => string} of */
    const body = (of) => Object.fromEntries(changed.map((name) => [name, name === "aliases" ? lines(of(name)) : of(name)]));
    const [now, former] = [body(text), body((name) => before[name])];
    setBusy(true);
    try {
      const isDone = await patchConcept(agent, concept, now);
      onClose();
      notify(`The concept ${text("name")} is saved${isDone ? "" : "; a name that texts use stays"}.`, async () => {
        await patchConcept(agent, { ...concept, ...now }, former);
        onChanged();
      });
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
    onChanged();
  };
  return html`<form class="fields" onSubmit=${save}>
      <label>Name <input name="name" required dir="auto" autocomplete="off" defaultValue=${concept.name} /></label>
      <label>Kind <input name="kind" required autocomplete="off" defaultValue=${concept.kind} /></label>
      <label>Description <input name="description" size="40" dir="auto" autocomplete="off" defaultValue=${stated} /></label>
      <label>Other names, one a line; concepts of these names are merged into this one
        <textarea name="aliases" rows="3" dir="auto" autocomplete="off" defaultValue=${concept.aliases.join("\n")}></textarea></label>
      <button disabled=${busy}>Save</button><button type="button" onClick=${onClose}>Cancel</button>
    </form>
    ${busy && html`<p class="faint" role="status">Saving; concepts are merged in the background …</p>`}
    <${Problem} error=${error} />`;
}

/**
 * A field for another concept that is the same thing: it is merged into this one, with undo.
 * @param {{ agent: string, concept: Concept, onChanged: () => void, onClose: () => void }} props
 */
export function ConceptMerge({ agent, concept, onChanged, onClose }) {
  const [busy, setBusy] = useState(false);
  /** @param {Concept} other */
  const merge = async (other) => {
    if (other.id === concept.id) throw new Error(`${other.name} is this concept already.`);
    let aliases = concept.aliases;
    setBusy(true);
    try {
      aliases = [...aliases, await nameOf(agent, other)];
      await patchConcept(agent, concept, { aliases });
    } finally {
      setBusy(false);
    }
    onChanged();
    onClose();
    notify(`${other.name} is merged into ${concept.name}.`, async () => {
      await patchConcept(agent, { ...concept, aliases: [...aliases, ...other.aliases] }, { aliases: concept.aliases });
      onChanged();
    });
  };
  return html`<section aria-label="Merge"><${Find} agent=${agent} name="merged" without=${concept.id} label=${`Concept that is the same as ${concept.name}`} action="Merge" onFound=${merge} />
    <p class="faint">Its mentions count for ${concept.name} from then on, and its name leads here.</p>
    ${busy && html`<p class="faint" role="status">Merging …</p>`}
    <p><button type="button" onClick=${onClose}>Cancel</button></p></section>`;
}
