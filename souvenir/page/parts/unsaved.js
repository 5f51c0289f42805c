// The browser asks before a reload or a closed tab loses what is typed and not saved.
import { key } from "../state.js";

/** The parts that have something unsaved, with the key it was typed with. @type {Map<string, string>} */
const unsaved = new Map();

/** @param {BeforeUnloadEvent} event */
function ask(event) {
  // What was typed with another key goes with it.
  if ([...unsaved.values()].includes(key.peek())) event.preventDefault();
}

/**
 * Note whether a part has something unsaved.
 * @param {string} part
 * @param {boolean} is
 */
export function noteUnsaved(part, is) {
  if (!is) unsaved.delete(part);
  else if (!unsaved.has(part)) unsaved.set(part, key.peek());
  if (unsaved.size) addEventListener("beforeunload", ask);
  else removeEventListener("beforeunload", ask);
}
