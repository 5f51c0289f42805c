// Changes of memories. Parts that show memories ask again when `changes` counts one.
import { call } from "../api.js";
import { signal } from "../vendor/preact-signals.js";

/** @import { Schemas } from "../api.js" */
/** @typedef {Schemas["MemoryRecord"]} Memory */

/** The number of changes that this page made. */
export const changes = signal(0);

/**
 * @param {number} id
 * @param {Partial<Schemas["PatchMemoryRequest"]>} change
 */
export async function patchMemory(id, change) {
  await call("PATCH", `memory/${id}`, { body: change });
  changes.value += 1;
}

/**
 * Set the text, unless it is no longer the expected one.
 * @param {number} id
 * @param {string} expected
 * @param {string} text
 * @param {string[]} [facts] Facts to set with it; without them, those of the old text are removed.
 * @returns {Promise<string | null>} The text that somebody else wrote; null if the new one is stored.
 */
export async function replaceText(id, expected, text, facts) {
  /** @type {Memory} */
  const now = await call("GET", `memory/${id}`);
  if (now.text !== expected) return now.text;
  await patchMemory(id, facts?.length ? { text, facts } : { text });
  return null;
}

/**
 * @param {Memory} memory
 * @returns {string[]}
 */
export const tagsOf = (memory) => (Array.isArray(memory.tags) ? memory.tags.map(String) : []);

/**
 * @param {Memory} memory
 * @returns {Schemas["FactRecord"][]}
 */
export const factsOf = (memory) =>
  Array.isArray(memory.facts) ? memory.facts.filter((fact) => typeof fact?.text === "string") : [];

/** @param {unknown} failed */
export const reason = (failed) =>
  failed instanceof TypeError ? "Not saved: the service cannot be reached." : /** @type {Error} */ (failed).message;
