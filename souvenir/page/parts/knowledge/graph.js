import { address, go, route } from "../../state.js";
import { counted } from "../figures.js";
import { CO_OCCURS, PATH_CANDIDATES, PATH_STEPS, loaded, relationName } from "./graph-data.js";
import { Legend, kindsOf, kindsText } from "./graph-kinds.js";
import { html } from "../html.js";
import { Find } from "./find.js";
import { Lazy } from "../lazy.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["ConceptRecord"]} Concept */
/** @import { Relation } from "./graph-data.js" */
/** @typedef {Awaited<ReturnType<typeof loaded>>} Loaded */

const drawing = () => import("./graph-drawing.js").then((module) => module.GraphDrawing);

/** @param {Event} event */
const valueOf = (event) => /** @type {HTMLInputElement} */ (event.target).value;

/**
 * The concepts of an agent and how they are connected: the most characteristic ones, and those that were expanded. What
 * is expanded, selected, filtered and connected by a path is part of the address.
 * @param {{ agent: string }} props `agent` is encoded for a path.
 */
export function ConceptGraph({ agent }) {
  const { query } = route.value;
  const state = Object.fromEntries(["around", "node", "to", "without", "since", "until"].map((name) => [name, query.get(name)]));
  const around = state.around?.split(".").filter(Boolean) ?? null;
  const asked = useRequest((signal) => loaded(agent, around, state.node, state.to, signal), [agent, state.around, state.node, state.to]);
  /** @type {Loaded | null} */
  const answer = asked.answer;
  if (!answer) return html`<${RequestState} ...${asked} />`;
  /** @param {Record<string, string | null>} change */
  const place = (change) => ({ show: "graph", ...state, ...change });
  /** @param {Record<string, string | null>} change */
  const change = (change) => go("knowledge", place(change), { replace: true });
  /** @param {number | string} id */
  const expanded = (id) => ({ node: String(id), to: null, around: [...new Set([...answer.around, String(id)])].join(".") });
  const { kinds, concepts, relations } = filtered(answer, state);
  const most = Math.max(1, ...concepts.map(({ mentions }) => mentions));
  const selected = concepts.find(({ id }) => String(id) === state.node);
  const label = `${counted(concepts.length, "concept", "concepts")}, ${counted(relations.length, "relation", "relations")}; the tables below list them`;
  const nodes = concepts.map(({ id, name, kind, mentions }) => ({ id: String(id), name, kind: kinds.indexOf(kind), weight: Math.sqrt(mentions / most) }));
  const edges = relations.map(({ from, to, type }) => ({ from: String(from), to: String(to), type: type === CO_OCCURS ? "" : relationName(type) }));
  return html`<section aria-label="Graph">
    <${Find} agent=${agent} name="find" label="Find a concept" onFound=${(/** @type {Concept} */ { id }) => change(expanded(id))} />
    <${RequestState} ...${asked} />
    ${!answer.concepts.length && html`<p>No concept yet. Names, things and dates that the stored texts mention appear here by themselves.</p>`}
    ${
      answer.concepts.length > 0 &&
      html`<${Legend} kinds=${kinds} hidden=${kindsOf(state.without)} onChange=${(/** @type {string[]} */ hidden) => change({ without: kindsText(hidden) })} />
        <div class="legend"><label>Mentioned from <input type="date" value=${state.since ?? ""} onChange=${(/** @type {Event} */ event) => change({ since: valueOf(event) })} /></label>
          <label>until <input type="date" value=${state.until ?? ""} onChange=${(/** @type {Event} */ event) => change({ until: valueOf(event) })} /></label></div>
        <div class="graph-and-panel">
          <${Lazy} load=${drawing} label=${label} nodes=${nodes} edges=${edges} selected=${state.node} path=${answer.path.map(String)}
            onSelect=${(/** @type {string} */ id) => change({ node: id, to: null })} onExpand=${(/** @type {string} */ id) => change(expanded(id))} />
          ${
            selected
              ? html`<section aria-label="Selected">
                <h2><a href=${address("knowledge", { concept: selected.id })}><bdi>${selected.name}</bdi></a></h2>
                <p class="faint"><bdi>${selected.kind}</bdi> · ${counted(selected.mentions, "mention", "mentions")}</p>
                <p><button type="button" disabled=${answer.around.includes(String(selected.id))} onClick=${() => change(expanded(selected.id))}>${answer.around.includes(String(selected.id)) ? "Neighbours are shown" : "Show neighbours"}</button></p>
                <${Find} agent=${agent} name="to" label=${`Path from ${selected.name} to`} onFound=${(/** @type {Concept} */ { id }) => change({ to: String(id) })} />
                ${state.to && html`<${PathFound} path=${answer.path.map((id) => ({ id, name: answer.concepts.find((each) => each.id === id)?.name ?? "" }))} />`}
              </section>`
              : html`<p class="faint">Choose a concept in the drawing or in the table below it, to see its neighbours and the path to another.</p>`
          }
        </div>
        ${state.around && html`<p><a href=${address("knowledge", place({ around: null, node: null, to: null }))}>Start again with the most characteristic concepts</a></p>`}`
    }
    <${Shown} concepts=${concepts} around=${answer.around} selected=${state.node} placeOf=${(/** @type {number} */ id) => address("knowledge", place({ node: String(id), to: null }))} onExpand=${(/** @type {number} */ id) => change(expanded(id))} />
    <${Relations} concepts=${concepts} relations=${relations} />
  </section>`;
}

/**
 * What the filters leave; the concepts of a path always stay.
 * @param {Loaded} answer
 * @param {Record<string, string | null>} state
 */
function filtered(answer, { without, since, until }) {
  const hidden = kindsOf(without);
  const onPath = new Set(answer.path);
  const concepts = answer.concepts.filter((each) => onPath.has(each.id) || (!hidden.includes(each.kind) && during(each, since ?? "", until ?? "")));
  const ids = new Set(concepts.map(({ id }) => id));
  const relations = answer.relations.filter(({ from, to }) => ids.has(from) && ids.has(to));
  return { kinds: [...new Set(answer.concepts.map(({ kind }) => kind))].sort(), concepts, relations };
}

/** @param {{ path: { id: number, name: string }[] }} props */
const PathFound = ({ path }) =>
  path.length
    ? html`<p role="status">Path: ${path.map(({ id, name }, place) => html`${place > 0 && " – "}<a key=${id} href=${address("knowledge", { concept: id })}><bdi>${name}</bdi></a>`)}</p>`
    : html`<p role="status">It is not among the ${PATH_CANDIDATES} concepts that are most strongly connected in at most ${PATH_STEPS} steps.</p>`;

/**
 * What the drawing offers, for the keyboard and for reading aloud.
 * @param {{ concepts: Concept[], around: string[], selected: string | null, placeOf: (id: number) => string, onExpand: (id: number) => void }} props
 */
function Shown({ concepts, around, selected, placeOf, onExpand }) {
  if (!concepts.length) return null;
  const sorted = [...concepts].sort((one, other) => other.mentions - one.mentions);
  return html`<details class="shown"><summary>Concepts in the drawing</summary><div class="wide-table" tabindex="0"><table><thead><tr><th>Concept</th><th>Kind</th><th>Mentions</th><th>Last mention</th><th>Neighbours</th></tr></thead>
    <tbody>${sorted.map(
      ({ id, name, kind, mentions, last_at: last }) => html`<tr key=${id}><td><a href=${placeOf(id)} aria-current=${String(id) === selected ? "true" : undefined}><bdi>${name}</bdi></a></td><td><bdi>${kind}</bdi></td><td>${mentions.toLocaleString("en")}</td>
        <td>${last && html`<${Time} at=${last} />`}</td><td>${around.includes(String(id)) ? "shown" : html`<button type="button" aria-label=${`Show neighbours of ${name}`} onClick=${() => onExpand(id)}>Show</button>`}</td></tr>`,
    )}</tbody></table></div></details>`;
}

/** @param {{ concepts: Concept[], relations: Relation[] }} props */
function Relations({ concepts, relations }) {
  const named = new Map(concepts.map((each) => [each.id, each.name]));
  if (!relations.length) return null;
  /** @param {number} id */
  const link = (id) => html`<a href=${address("knowledge", { concept: id })}><bdi>${named.get(id)}</bdi></a>`;
  return html`<h2>Relations</h2><div class="wide-table" tabindex="0"><table><thead><tr><th>Concept</th><th>Relation</th><th>Concept</th><th>Texts</th></tr></thead>
    <tbody>${relations.map(
      ({ from, to, type, together }) => html`<tr key=${`${from} ${type} ${to}`}><td>${link(from)}</td><td><bdi>${relationName(type)}</bdi></td><td>${link(to)}</td><td>${together.toLocaleString("en")}</td></tr>`,
    )}</tbody></table></div>`;
}

/**
 * Whether a concept was mentioned in a span of days; an empty bound excludes nothing.
 * @param {Concept} concept
 * @param {string} since
 * @param {string} until
 */
const during = ({ first_at, last_at }, since, until) =>
  (!since || (last_at ?? "").slice(0, 10) >= since) && (!until || (first_at ?? "").slice(0, 10) <= until);
