import { call } from "../api.js";
import { address, go, route } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { counted } from "./figures.js";
import { Legend } from "./graph-kinds.js";
import { html } from "./html.js";
import { Lazy } from "./lazy.js";
import { RequestState, useRequest } from "./request.js";
import { StoredText } from "./text.js";

/** @import { Schemas } from "../api.js" */

const AT_ONCE = 200;

const drawing = () => import("./graph-drawing.js").then((module) => module.GraphDrawing);

/** The entities and relations that clients of MCP stored in the namespace, drawn and as tables. */
export function Entities() {
  const { query } = route.value;
  const [hidden, setHidden] = useState(/** @type {string[]} */ ([]));
  const q = query.get("q") ?? "";
  const name = query.get("entity");
  const asked = useRequest(
    (signal) => call("GET", `knowledge-graph?limit=${AT_ONCE}${q && `&q=${encodeURIComponent(q)}`}`, { signal }),
    [q, query.get("in")],
  );
  /** @type {Schemas["GraphResponse"] | null} */
  const answer = asked.answer;
  /** @param {Record<string, string | null>} change */
  const change = (change) => go("knowledge", { show: "entities", q, entity: name, ...change }, { replace: true });
  /** @param {SubmitEvent} event */
  const find = (event) => {
    event.preventDefault();
    change({ q: String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("q")), entity: null });
  };
  const kinds = [...new Set(answer?.entities.map((each) => each.entity_type))].sort();
  const entities = answer?.entities.filter((each) => !hidden.includes(each.entity_type)) ?? [];
  const names = new Set(entities.map((each) => each.name));
  const relations = answer?.relations.filter((each) => names.has(each.from_entity) && names.has(each.to_entity)) ?? [];
  const selected = entities.find((each) => each.name === name);
  const label = `${counted(entities.length, "entity", "entities")}, ${counted(relations.length, "relation", "relations")}; the tables below list them`;
  const nodes = entities.map((each) => ({ id: each.name, name: each.name, kind: kinds.indexOf(each.entity_type), weight: 0.5 }));
  const edges = relations.map((each) => ({ from: each.from_entity, to: each.to_entity, type: each.relation_type.replaceAll("_", " ") }));
  return html`<section aria-label="Entities">
    <form class="fields" onSubmit=${find}><label>Search entities <input name="q" dir="auto" autocomplete="off" defaultValue=${q} /></label><button>Search</button></form>
    <${RequestState} ...${asked} />
    ${answer && !answer.entities.length && html`<p>No entity ${q ? "matches" : "yet. Clients of MCP store entities with the tools of a knowledge graph"}.</p>`}
    ${
      answer &&
      answer.entities.length > 0 &&
      html`<${Legend} kinds=${kinds} hidden=${hidden} onChange=${setHidden} />
        <${Lazy} load=${drawing} label=${label} nodes=${nodes} edges=${edges} selected=${name} path=${[]} onSelect=${(/** @type {string} */ entity) => change({ entity })} />
        ${answer.next_offset !== null && answer.next_offset !== undefined && html`<p class="faint">The first ${AT_ONCE} are shown. Search for others.</p>`}
        ${selected && html`<${Selected} entity=${selected} />`}
        <h2>Entities</h2><div class="wide-table" tabindex="0"><table><thead><tr><th>Entity</th><th>Kind</th><th>Observations</th></tr></thead>
          <tbody>${entities.map(
            (each) => html`<tr key=${each.name}><td><a href=${address("knowledge", { show: "entities", q, entity: each.name })}><bdi>${each.name}</bdi></a></td><td><bdi>${each.entity_type}</bdi></td><td>${each.observations.length.toLocaleString("en")}</td></tr>`,
          )}</tbody></table></div>`
    }
    ${
      relations.length > 0 &&
      html`<h2>Relations</h2><div class="wide-table" tabindex="0"><table><thead><tr><th>Entity</th><th>Relation</th><th>Entity</th></tr></thead>
        <tbody>${relations.map(
          ({ from_entity: from, relation_type: type, to_entity: to }) =>
            html`<tr key=${JSON.stringify([from, type, to])}><td><bdi>${from}</bdi></td><td><bdi>${type.replaceAll("_", " ")}</bdi></td><td><bdi>${to}</bdi></td></tr>`,
        )}</tbody></table></div>`
    }
  </section>`;
}

/** @param {{ entity: Schemas["EntityRecord"] }} props */
const Selected = ({ entity }) =>
  html`<section aria-label="Selected"><h2><bdi>${entity.name}</bdi></h2>
    <p class="faint"><bdi>${entity.entity_type}</bdi> · <a href=${address("memories", { memory: entity.id })}>Memory ${entity.id}</a></p>
    ${entity.observations.map((each) => html`<${StoredText} key=${each} text=${each} />`)}</section>`;
