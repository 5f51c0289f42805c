import cytoscape from "../../vendor/cytoscape.js";
import { useEffect, useRef } from "../../vendor/preact-hooks.js";
import { html } from "../html.js";
import { COLOURS, SHAPES } from "./graph-kinds.js";
import { colour, onTheme, styles } from "../styles.js";

/**
 * @typedef {{ id: string, name: string, kind: number, weight: number }} Node `kind` is its place in the legend, `weight` in 0 to 1.
 * @typedef {{ from: string, to: string, type: string }} Edge
 */

// With this id, because the library would insert styles of its own otherwise, which the page's policy forbids.
await styles("style/graph.css", "__________cytoscape_stylesheet");

const PADDING = 32;
const ZOOM = 1.4;
const NAME_PX = 13;
const RELATION_PX = 11;
const CROWDED = 0.5;
const IMPORTANT = 0.6;

/**
 * A drawing of nodes and edges. What it shows must also stand in a table: a drawing cannot be read aloud.
 * @param {{
 *   label: string, nodes: Node[], edges: Edge[], selected: string | null, path: string[],
 *   onSelect: (id: string) => void, onExpand?: (id: string) => void,
 * }} props `path` has the ids of the nodes along a path that stands out; a double click expands a node.
 */
export function GraphDrawing({ label, nodes, edges, selected, path, onSelect, onExpand }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const drawing = useRef(/** @type {cytoscape.Core | null} */ (null));
  const select = useRef(onSelect);
  select.current = onSelect;
  const expand = useRef(onExpand);
  expand.current = onExpand;
  const fit = () => drawing.current?.animate({ fit: { eles: drawing.current.elements(), padding: PADDING } }, { duration: 0 });
  /** @param {number} by */
  const zoom = (by) => drawing.current?.zoom({ level: drawing.current.zoom() * by, renderedPosition: { x: drawing.current.width() / 2, y: drawing.current.height() / 2 } });
  useEffect(() => {
    const core = cytoscape({ container: place.current, style: look(1), minZoom: 0.2, maxZoom: 2, boxSelectionEnabled: false });
    drawing.current = core;
    core.on("tap", "node", (event) => select.current(event.target.id()));
    core.on("dbltap", "node", (event) => expand.current?.(event.target.id()));
    // Names keep a size that can be read.
    core.on("zoom", () => core.style(look(core.zoom())));
    const end = onTheme(() => core.style(look(core.zoom())));
    return () => {
      end();
      core.destroy();
    };
  }, []);
  const shown = JSON.stringify([nodes, edges]);
  useEffect(() => {
    if (drawing.current) draw(drawing.current, nodes, edges);
  }, [shown]);
  useEffect(() => {
    const core = drawing.current;
    if (!core) return;
    core.elements().removeClass("selected path");
    if (selected) core.getElementById(selected).addClass("selected");
    const on = core.nodes().filter((node) => path.includes(node.id()));
    on.union(on.edgesWith(on)).addClass("path");
  }, [shown, selected, path.join(" ")]);
  return html`<div class="graph-frame"><div ref=${place} class="graph" role="img" aria-label=${label}></div>
    <p class="actions"><button type="button" onClick=${() => zoom(ZOOM)}>Larger</button><button type="button" onClick=${() => zoom(1 / ZOOM)}>Smaller</button><button type="button" onClick=${fit}>Fit</button></p></div>`;
}

/**
 * Make the drawing show these elements. Those that stay keep their place, unless nothing was there before.
 * @param {cytoscape.Core} core
 * @param {Node[]} nodes
 * @param {Edge[]} edges
 */
function draw(core, nodes, edges) {
  /** @type {cytoscape.ElementDefinition[]} */
  const wanted = [
    ...nodes.map((node) => ({ data: node })),
    ...edges.map(({ from, to, type }) => ({ data: { id: JSON.stringify([from, to, type]), source: from, target: to, type } })),
  ];
  const ids = new Set(wanted.map(({ data }) => data.id));
  const first = core.elements().empty();
  const gone = core.elements().filter((each) => !ids.has(each.id()));
  gone.remove();
  const added = wanted.filter(({ data }) => core.getElementById(String(data.id)).empty());
  if (!added.length) {
    if (gone.nonempty()) core.fit(undefined, PADDING);
    return;
  }
  const kept = core.nodes();
  kept.lock();
  core.add(added);
  for (const node of core.nodes().difference(kept)) {
    // A new node starts next to one that it is connected with.
    const near = node.neighborhood().nodes().intersection(kept);
    if (near.nonempty()) node.position({ ...near[0].position() });
  }
  core.layout({ name: "cose", animate: false, randomize: first, fit: true, padding: PADDING, nodeDimensionsIncludeLabels: true }).run();
  kept.unlock();
}

/**
 * @param {number} zoom
 * @returns {cytoscape.StylesheetJson}
 */
const look = (zoom) => [
  {
    selector: "node",
    style: {
      // Where many are drawn small, only the important ones have room for their names.
      label: (/** @type {cytoscape.NodeSingular} */ node) => (zoom < CROWDED && node.data("weight") < IMPORTANT ? "" : node.data("name")),
      width: "mapData(weight, 0, 1, 12, 36)",
      height: "mapData(weight, 0, 1, 12, 36)",
      shape: (/** @type {cytoscape.NodeSingular} */ node) => SHAPES[node.data("kind") % SHAPES.length].name,
      "background-color": (/** @type {cytoscape.NodeSingular} */ node) => colour(COLOURS[node.data("kind") % COLOURS.length]),
      color: colour("ink"),
      "font-size": NAME_PX / zoom,
      "text-valign": "bottom",
      "text-margin-y": 4,
      "text-max-width": `${120 / zoom}px`,
      "text-wrap": "ellipsis",
    },
  },
  {
    selector: "edge",
    style: {
      width: 0.75,
      "line-color": colour("faint"),
      "curve-style": "bezier",
      "target-arrow-color": colour("faint"),
      color: colour("faint"),
      "font-size": RELATION_PX / zoom,
      "text-rotation": "autorotate",
    },
  },
  { selector: "edge[type != '']", style: { label: "data(type)", "target-arrow-shape": "triangle" } },
  { selector: "node.path", style: { label: "data(name)", "border-width": 3, "border-color": colour("ink") } },
  { selector: "edge.path", style: { width: 3, "line-color": colour("ink"), "target-arrow-color": colour("ink") } },
  { selector: "node.selected", style: { label: "data(name)", "border-width": 4, "border-color": colour("ink"), "font-weight": "bold", "background-color": colour("accent") } },
];
