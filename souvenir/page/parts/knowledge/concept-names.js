// Changes of a concept. Another concept of a stated name is merged by the service in the background.
import { ApiError, call } from "../../api.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["ConceptRecord"]} Concept */

const AGAIN_MS = 250;
const PATIENCE_MS = 10_000;
const FIGURES_MS = 1500;

/**
 * Change a concept, and wait until concepts of added names are merged into it and those of removed names are apart,
 * with its mentions, which follow a little later.
 * @param {string} agent Encoded for a path.
 * @param {Concept} concept As it was before.
 * @param {Partial<Schemas["UpdateConceptRequest"]>} change
 * @returns {Promise<boolean>} False if names did not follow in time: those that texts use cannot be taken away.
 */
export async function patchConcept(agent, concept, change) {
  const path = `agents/${agent}/concepts/${concept.id}`;
  const mentions = change.aliases ? (await call("GET", `${path}?mentions=1`)).mentions : 0;
  await call("PATCH", path, { body: change });
  const now = change.aliases;
  if (!now) return true;
  const added = now.filter((name) => !concept.aliases.includes(name));
  const removed = concept.aliases.filter((name) => !now.includes(name));
  const end = Date.now() + PATIENCE_MS;
  while (Date.now() < end) {
    if (await hasNames(agent, concept.id, added, removed)) {
      // Equal mentions are possible: those of both may be in the same texts.
      const last = Date.now() + FIGURES_MS;
      while (Date.now() < last && (await call("GET", `${path}?mentions=1`)).mentions === mentions) await pause();
      return true;
    }
    await pause();
  }
  return false;
}

const pause = () => new Promise((done) => setTimeout(done, AGAIN_MS));

/**
 * What names a concept and no other: its name, or its key where another concept of the same name is found by it.
 * @param {string} agent
 * @param {Concept} concept
 */
export const nameOf = async (agent, { id, name, key }) => ((await ownerOf(agent, name)) === id ? name : key);

/**
 * @param {string} agent
 * @param {number} id
 * @param {string[]} added
 * @param {string[]} removed
 */
async function hasNames(agent, id, added, removed) {
  const [owners, concept] = await Promise.all([
    Promise.all(added.map((name) => ownerOf(agent, name))),
    call("GET", `agents/${agent}/concepts/${id}?mentions=1`),
  ]);
  return owners.every((owner) => owner === id) && !removed.some((name) => concept.aliases.includes(name));
}

/**
 * The id of the concept of a name; null if there is none.
 * @param {string} agent
 * @param {string} name
 */
async function ownerOf(agent, name) {
  try {
    return (await call("GET", `agents/${agent}/concept?name=${encodeURIComponent(name)}`)).id;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}
