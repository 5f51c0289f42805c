import { address, go, route } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { counted } from "./figures.js";
import { CO_OCCURS, PATH_CANDIDATES, PATH_STEPS, loaded } from "./graph-data.js";
import { Legend } from "./graph-kinds.js";
import { html } from "./html.js";
import { Find } from "./knowledge-find.js";
import { Lazy } from "./lazy.js";
import { RequestState, useRequest } from "./request.js";

/** @import { Schemas } from "../api.js" */
/** @typedef {Schemas["ConceptRecord"]} Concept */
/** @import { Relation } from "./graph-data.js" */

const drawing = () => import("./graph-drawing.js").then((module) => module.GraphDrawing);

/**
 * The concepts of an agent and how they are connected: the most characteristic ones, and those that were expanded. What
 * is expanded, selected and connected by a path is part of the address.
 * @param {{ agent: string }} props `agent` is encoded for a path.
 */
export function ConceptGraph({ agent }) {
  const { query } = route.value;
  const state = { show: "graph", around: query.get("around"), node: query.get("node"), to: query.get("to") };
  const around = state.around?.split(".").filter(Boolean) ?? null;
  const [hidden, setHidden] = useState(/** @type {string[]} */ ([]));
  const [since, setSince] = useState("");
  const [until, setUntil] = useState("");
  const asked = useRequest((signal) => loaded(agent, around, state.node, state.to, signal), [agent, state.around, state.node, state.to]);
  /** @type {Awaited<ReturnType<typeof loaded>> | null} */
  const answer = asked.answer;
  if (!answer) return html`<${RequestState} ...${asked} />`;
  const kinds = [...new Set(answer.concepts.map(({ kind }) => kind))].sort();
  const onPath = new Set(answer.path);
  const concepts = answer.concepts.filter((each) => onPath.has(each.id) || (!hidden.includes(each.kind) && during(each, since, until)));
  const ids = new Set(concepts.map(({ id }) => id));
  const relations = answer.relations.filter(({ from, to }) => ids.has(from) && ids.has(to));
  const most = Math.max(1, ...concepts.map(({ mentions }) => mentions));
  const selected = concepts.find(({ id }) => String(id) === state.node);
  /** @param {Record<string, string | null>} change */
  const change = (change) => go("knowledge", { ...state, ...change }, { replace: true });
  /** @param {number} id */
  const expand = (id) => change({ node: String(id), around: [...new Set([...answer.around, String(id)])].join(".") });
  const label = `${counted(concepts.length, "concept", "concepts")}, ${counted(relations.length, "relation", "relations")}; the table below lists them`;
  const nodes = concepts.map(({ id, name, kind, mentions }) => ({ id: String(id), name, kind: kinds.indexOf(kind), weight: Math.sqrt(mentions / most) }));
  const edges = relations.map(({ from, to, type }) => ({ from: String(from), to: String(to), type: type === CO_OCCURS ? "" : type.replaceAll("_", " ") }));
  return html`<section aria-label="Graph">
    <${Find} agent=${agent} name="find" label="Find a concept" onFound=${expand} />
    <${RequestState} ...${asked} />
    ${!answer.concepts.length && html`<p>No concept yet. Names, things and dates that the stored texts mention appear here by themselves.</p>`}
    ${
      answer.concepts.length > 0 &&
      html`<${Legend} kinds=${kinds} hidden=${hidden} onChange=${setHidden} />
        <div class="legend"><label>Mentioned from <input type="date" value=${since} onChange=${(/** @type {any} */ event) => setSince(event.target.value)} /></label>
          <label>until <input type="date" value=${until} onChange=${(/** @type {any} */ event) => setUntil(event.target.value)} /></label></div>
        <${Lazy} load=${drawing} label=${label} nodes=${nodes} edges=${edges} selected=${state.node} path=${answer.path.map(String)} onSelect=${(/** @type {string} */ id) => change({ node: id, to: null })} />`
    }
    ${
      selected &&
      html`<section aria-label="Selected">
        <h2><a href=${address("knowledge", { concept: selected.id })}><bdi>${selected.name}</bdi></a></h2>
        <p class="faint">${selected.kind} · ${counted(selected.mentions, "mention", "mentions")}</p>
        <p><button type="button" disabled=${answer.around.includes(String(selected.id))} onClick=${() => expand(selected.id)}>Show neighbours</button></p>
        <${Find} agent=${agent} name="to" label=${`Path from ${selected.name} to`} onFound=${(/** @type {number} */ id) => change({ to: String(id) })} />
        ${state.to && html`<${PathFound} names=${answer.path.map((id) => answer.concepts.find((each) => each.id === id)?.name ?? "")} />`}
      </section>`
    }
    <${Relations} concepts=${concepts} relations=${relations} />
  </section>`;
}

/** @param {{ names: string[] }} props */
const PathFound = ({ names }) =>
  names.length
    ? html`<p role="status">Path: ${names.map((name, place) => html`${place > 0 && " – "}<bdi>${name}</bdi>`)}</p>`
    : html`<p role="status">It is not among the ${PATH_CANDIDATES} concepts that are most strongly connected in at most ${PATH_STEPS} steps.</p>`;

/** @param {{ concepts: Concept[], relations: Relation[] }} props */
function Relations({ concepts, relations }) {
  const named = new Map(concepts.map((each) => [each.id, each.name]));
  if (!relations.length) return null;
  /** @param {number} id */
  const link = (id) => html`<a href=${address("knowledge", { concept: id })}><bdi>${named.get(id)}</bdi></a>`;
  return html`<h2>Relations</h2><div class="wide-table" tabindex="0"><table><thead><tr><th>Concept</th><th>Relation</th><th>Concept</th><th>Mentioned together</th></tr></thead>
    <tbody>${relations.map(
      ({ from, to, type, together }) => html`<tr key=${`${from} ${type} ${to}`}><td>${link(from)}</td><td>${type.replaceAll("_", " ")}</td><td>${link(to)}</td><td>${together.toLocaleString("en")}</td></tr>`,
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
