import { address, go, route } from "../../state.js";
import { entities as load } from "./entity-data.js";
import { counted } from "../figures.js";
import { Legend, kindsOf, kindsText } from "./graph-kinds.js";
import { html } from "../html.js";
import { Lazy } from "../lazy.js";
import { RequestState, useRequest } from "../request.js";
import { mcpSnippet, Snippet } from "../snippets.js";
import { StoredText } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const drawing = () => import("./graph-drawing.js").then((module) => module.GraphDrawing);

/** Names in an address. @param {string | null} text @returns {string[]} */
function namesOf(text) {
  try {
    const names = JSON.parse(text ?? "[]");
    return Array.isArray(names) ? names.map(String) : [];
  } catch {
    return [];
  }
}

/** The entities and relations that clients of MCP stored in the namespace, drawn and as tables. */
export function Entities() {
  const { query } = route.value;
  const state = Object.fromEntries(["q", "entity", "around", "without"].map((name) => [name, query.get(name)]));
  const q = state.q ?? "";
  const around = namesOf(state.around);
  const asked = useRequest((signal) => load(q, around, signal), [q, state.around, query.get("in")]);
  /** @type {Awaited<ReturnType<typeof load>> | null} */
  const answer = asked.answer;
  /** @param {Record<string, string | null>} change */
  const place = (change) => ({ show: "entities", ...state, ...change });
  /** @param {Record<string, string | null>} change */
  const change = (change) => go("knowledge", place(change), { replace: true });
  /** @param {string} name */
  const expand = (name) => change({ entity: name, around: JSON.stringify([...new Set([...around, name])]) });
  /** @param {SubmitEvent} event */
  const find = (event) => {
    event.preventDefault();
    change({ q: String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("q")), entity: null, around: null });
  };
  const hidden = kindsOf(state.without);
  const kinds = [...new Set(answer?.entities.map((each) => each.entity_type))].sort();
  const entities = answer?.entities.filter((each) => !hidden.includes(each.entity_type)) ?? [];
  const names = new Set(entities.map((each) => each.name));
  const relations = answer?.relations.filter((each) => names.has(each.from_entity) && names.has(each.to_entity)) ?? [];
  const selected = entities.find((each) => each.name === state.entity);
  const label = `${counted(entities.length, "entity", "entities")}, ${counted(relations.length, "relation", "relations")}; the tables below list them`;
  const nodes = entities.map((each) => ({ id: each.name, name: each.name, kind: kinds.indexOf(each.entity_type), weight: 0.6 }));
  const edges = relations.map((each) => ({ from: each.from_entity, to: each.to_entity, type: each.relation_type.replaceAll("_", " ") }));
  return html`<section aria-label="Entities">
    <form class="fields" onSubmit=${find}><label>Search entities <input name="q" dir="auto" autocomplete="off" defaultValue=${q} /></label><button>Search</button></form>
    <${RequestState} ...${asked} />
    ${answer && !answer.entities.length && (q ? html`<p>No entity matches.</p>` : html`<${NoEntity} />`)}
    ${
      answer &&
      answer.entities.length > 0 &&
      html`<${Legend} kinds=${kinds} hidden=${hidden} onChange=${(/** @type {string[]} */ kinds) => change({ without: kindsText(kinds) })} />
        <div class="graph-and-panel">
          <${Lazy} load=${drawing} label=${label} nodes=${nodes} edges=${edges} selected=${state.entity} path=${[]} onSelect=${(/** @type {string} */ entity) => change({ entity })} onExpand=${expand} />
          ${
            selected
              ? html`<${Selected} entity=${selected} isExpanded=${around.includes(selected.name)} onExpand=${expand} />`
              : html`<p class="faint">Choose an entity in the drawing or in the table below it, to read its observations and see its neighbours.</p>`
          }
        </div>
        ${answer.more && html`<p class="faint">A part of the graph is shown. Search for others, or show the neighbours of an entity.</p>`}
        ${(q || around.length > 0) && html`<p><a href=${address("knowledge", { show: "entities" })}>All entities</a></p>`}
        <${Tables} entities=${entities} relations=${relations} placeOf=${(/** @type {string} */ entity) => address("knowledge", place({ entity }))} />`
    }
  </section>`;
}

/** @param {{ entity: Schemas["EntityRecord"], isExpanded: boolean, onExpand: (name: string) => void }} props */
const Selected = ({ entity, isExpanded, onExpand }) =>
  html`<section aria-label="Selected"><h2><bdi>${entity.name}</bdi></h2>
    <p class="faint"><bdi>${entity.entity_type}</bdi> · <a href=${address("memories", { memory: entity.id })}>Memory ${entity.id}</a></p>
    <p><button type="button" disabled=${isExpanded} onClick=${() => onExpand(entity.name)}>${isExpanded ? "Neighbours are shown" : "Show neighbours"}</button></p>
    ${entity.observations.map((each) => html`<${StoredText} key=${each} text=${each} />`)}</section>`;

/** @param {{ entities: Schemas["EntityRecord"][], relations: Schemas["RelationRecord"][], placeOf: (name: string) => string }} props */
function Tables({ entities, relations, placeOf }) {
  /** @param {string} name */
  const link = (name) => html`<a href=${placeOf(name)}><bdi>${name}</bdi></a>`;
  return html`<h2>Entities</h2><div class="wide-table" tabindex="0"><table><thead><tr><th>Entity</th><th>Kind</th><th>Observations</th></tr></thead>
      <tbody>${entities.map((each) => html`<tr key=${each.name}><td>${link(each.name)}</td><td><bdi>${each.entity_type}</bdi></td><td>${each.observations.length.toLocaleString("en")}</td></tr>`)}</tbody></table></div>
    ${
      relations.length > 0 &&
      html`<h2>Relations</h2><div class="wide-table" tabindex="0"><table><thead><tr><th>Entity</th><th>Relation</th><th>Entity</th></tr></thead>
        <tbody>${relations.map(
          ({ from_entity: from, relation_type: type, to_entity: to }) =>
            html`<tr key=${JSON.stringify([from, type, to])}><td>${link(from)}</td><td><bdi>${type.replaceAll("_", " ")}</bdi></td><td>${link(to)}</td></tr>`,
        )}</tbody></table></div>`
    }`;
}

/** How the graph of entities is filled. */
function NoEntity() {
  return html`<p>No entity yet. Clients of MCP store entities with the tools of a knowledge graph, which the setting <code>MCP_TOOLS=memory,graph</code> of the service offers. For Claude Code:</p>
    <${Snippet} text=${mcpSnippet()} />`;
}
