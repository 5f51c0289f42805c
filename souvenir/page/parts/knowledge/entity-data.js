// The entities of a namespace and their relations, as a drawing shows them.
import { call } from "../../api.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["GraphResponse"]} Graph */

/** Entities that are shown before any is expanded. */
export const AT_ONCE = 100;

// Names in one request, because they stand in its address.
const NAMED = 20;

/**
 * The entities that a question finds, or else the first ones, with the neighbours of those that are expanded.
 * @param {string} q Empty for the first ones.
 * @param {string[]} expanded Names.
 * @param {AbortSignal} signal
 * @returns {Promise<{ entities: Graph["entities"], relations: Graph["relations"], more: boolean }>}
 */
export async function entities(q, expanded, signal) {
  /** @type {Graph} */
  const base = await call("GET", `knowledge-graph?limit=${AT_ONCE}${q && `&q=${encodeURIComponent(q)}`}`, { signal });
  const around = await named(expanded, signal);
  const known = new Set([...base.entities, ...around.entities].map(({ name }) => name));
  const ends = [...new Set(around.relations.flatMap(({ from_entity: from, to_entity: to }) => [from, to]))];
  const neighbours = await named(
    ends.filter((name) => !known.has(name)),
    signal,
  );
  const found = new Map([...base.entities, ...around.entities, ...neighbours.entities].map((each) => [each.name, each]));
  const all = [...base.relations, ...around.relations, ...neighbours.relations].filter((each) => found.has(each.from_entity) && found.has(each.to_entity));
  const relations = new Map(all.map((each) => [JSON.stringify([each.from_entity, each.relation_type, each.to_entity]), each]));
  return { entities: [...found.values()], relations: [...relations.values()], more: (base.next_offset ?? null) !== null };
}

/**
 * @param {string[]} names
 * @param {AbortSignal} signal
 */
async function named(names, signal) {
  const pages = [];
  for (let at = 0; at < names.length; at += NAMED) pages.push(names.slice(at, at + NAMED));
  /** @type {Graph[]} */
  const answers = await Promise.all(pages.map((page) => call("GET", `knowledge-graph?${page.map((name) => `names=${encodeURIComponent(name)}`).join("&")}`, { signal })));
  return { entities: answers.flatMap((each) => each.entities), relations: answers.flatMap((each) => each.relations) };
}
