// The concepts of an agent with their relations, as a drawing shows them.
import { call } from "../../api.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["ConceptRecord"]} Concept */
/** @typedef {{ from: number, to: number, type: string, together: number }} Relation */

const FIRST = 8;
const NEIGHBOURS = 8;

export const PATH_STEPS = 5;
export const PATH_CANDIDATES = 200;
export const CO_OCCURS = "co_occurs";

/** A relation in words. @param {string} type */
export const relationName = (type) => (type === CO_OCCURS ? "mentioned together" : type.replaceAll("_", " "));

/**
 * The concepts around some and around those of a path between two.
 * @param {string} agent Encoded for a path.
 * @param {string[] | null} chosen Ids; null means the most characteristic concepts.
 * @param {string | null} from
 * @param {string | null} to
 * @param {AbortSignal} signal
 */
export async function loaded(agent, chosen, from, to, signal) {
  const around = chosen ?? (await top(agent, signal));
  const path = from && to ? await pathBetween(agent, from, Number(to), signal) : [];
  const ids = [...new Set([...around, ...path.map(String)])];
  /** @type {Schemas["RelatedConcepts"][]} */
  const answers = await Promise.all(
    ids.map((id) => call("GET", `agents/${agent}/concepts/${encodeURIComponent(id)}/related?depth=1&limit=${path.includes(Number(id)) ? PATH_CANDIDATES : NEIGHBOURS}`, { signal })),
  );
  /** @type {Map<number, Concept>} */
  const concepts = new Map();
  /** @type {Map<string, Relation>} */
  const relations = new Map();
  for (const { concept, related } of answers) {
    concepts.set(concept.id, concept);
    // Of the many around a concept of the path, those of the path are wanted.
    const wanted = around.includes(String(concept.id)) ? related.slice(0, NEIGHBOURS) : [];
    for (const each of related) {
      if (!wanted.includes(each) && !path.includes(each.concept.id)) continue;
      concepts.set(each.concept.id, each.concept);
      const relation = relationOf(concept.id, each);
      relations.set(`${relation.from} ${relation.type} ${relation.to}`, relation);
    }
  }
  return { around, path, concepts: [...concepts.values()], relations: [...relations.values()] };
}

/**
 * @param {number} id
 * @param {Schemas["RelatedConcept"]} related
 * @returns {Relation} A co-occurrence has no direction: the smaller id is first.
 */
function relationOf(id, { concept, relationship_type: type, outgoing, together }) {
  const forward = type === CO_OCCURS ? id < concept.id : outgoing;
  return forward ? { from: id, to: concept.id, type, together } : { from: concept.id, to: id, type, together };
}

/**
 * @param {string} agent
 * @param {AbortSignal} signal
 */
async function top(agent, signal) {
  /** @type {Schemas["ConceptPage"]} */
  const page = await call("GET", `agents/${agent}/concepts?limit=${FIRST}`, { signal });
  return page.concepts.map(({ id }) => String(id));
}

/**
 * The ids along the strongest path between two concepts; none if there is no path.
 * @param {string} agent
 * @param {string} from
 * @param {number} to
 * @param {AbortSignal} signal
 */
async function pathBetween(agent, from, to, signal) {
  /** @type {Schemas["RelatedConcepts"]} */
  const { concept, related } = await call("GET", `agents/${agent}/concepts/${encodeURIComponent(from)}/related?depth=${PATH_STEPS}&limit=${PATH_CANDIDATES}`, { signal });
  const end = related.find((each) => each.concept.id === to);
  if (!end) return [];
  const between = end.path.map((name) => related.find((each) => each.concept.name === name)?.concept.id ?? 0);
  return [concept.id, ...between.filter(Boolean), to];
}
