// New keys, which the service shows only once: they stay here, in no storage, until the user has them.
import { effect, signal } from "../../vendor/preact-signals.js";
import { Copy } from "../copy.js";
import { html } from "../html.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["NewKeyResponse"]} NewKey */

/** @type {import("../../vendor/preact-signals.js").Signal<NewKey[]>} */
const unsaved = signal([]);

/** The browser asks before the page goes, and with it the keys. @param {Event} event */
const ask = (event) => event.preventDefault();
effect(() => (unsaved.value.length ? addEventListener("beforeunload", ask) : removeEventListener("beforeunload", ask)));

/** Keep a new key; a rotated one takes the place of the one before. @param {NewKey} made */
export function keepKey(made) {
  dropKey(made.id);
  unsaved.value = [...unsaved.value, made];
}

/** @param {string} id Of a key that the user has, or that is revoked. */
export function dropKey(id) {
  unsaved.value = unsaved.value.filter((each) => each.id !== id);
}

/** The new keys that the user does not have yet. */
export const NewKeys = () =>
  unsaved.value.map(
    ({ id, name, key }) => html`<div key=${id} class="warning" role="status"><p>The key <bdi>${name}</bdi> is shown only now. Copy it to where it is used:</p>
      <p class="secret">${key}</p><p><${Copy} key=${key} label="Copy the key" text=${() => key} />
      <button type="button" aria-label=${`I have it: ${name}`} onClick=${() => dropKey(id)}>I have it</button></p></div>`,
  );
