import cytoscape from "../vendor/cytoscape.js";
import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { COLOURS, SHAPES } from "./graph-kinds.js";
import { colour, onTheme, styles } from "./styles.js";

/**
 * @typedef {{ id: string, name: string, kind: number, weight: number }} Node `kind` is its place in the legend, `weight` in 0 to 1.
 * @typedef {{ from: string, to: string, type: string }} Edge
 */

// With this id, because the library would insert styles of its own otherwise, which the page's policy forbids.
await styles("style/graph.css", "__________cytoscape_stylesheet");

/**
 * A drawing of nodes and edges. What it shows must also stand in a table: a drawing cannot be read aloud.
 * @param {{ label: string, nodes: Node[], edges: Edge[], selected: string | null, path: string[], onSelect: (id: string) => void }} props
 *     `path` has the ids of the nodes along a path that stands out.
 */
export function GraphDrawing({ label, nodes, edges, selected, path, onSelect }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const drawing = useRef(/** @type {cytoscape.Core | null} */ (null));
  const select = useRef(onSelect);
  select.current = onSelect;
  useEffect(() => {
    const core = cytoscape({ container: place.current, style: look(), minZoom: 0.2, maxZoom: 2, boxSelectionEnabled: false });
    drawing.current = core;
    core.on("tap", "node", (event) => select.current(event.target.id()));
    const end = onTheme(() => core.style(look()));
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
  return html`<div ref=${place} class="graph" role="img" aria-label=${label}></div>`;
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
  core.elements().filter((each) => !ids.has(each.id())).remove();
  const added = wanted.filter(({ data }) => core.getElementById(String(data.id)).empty());
  if (!added.length) return;
  const kept = core.nodes();
  kept.lock();
  core.add(added);
  for (const node of core.nodes().difference(kept)) {
    // A new node starts next to one that it is connected with.
    const near = node.neighborhood().nodes().intersection(kept);
    if (near.nonempty()) node.position({ ...near[0].position() });
  }
  core.layout({ name: "cose", animate: false, randomize: first, fit: true, padding: 32, nodeDimensionsIncludeLabels: true }).run();
  kept.unlock();
}

/** @returns {cytoscape.StylesheetJson} */
const look = () => [
  {
    selector: "node",
    style: {
      label: "data(name)",
      width: "mapData(weight, 0, 1, 12, 36)",
      height: "mapData(weight, 0, 1, 12, 36)",
      shape: (/** @type {cytoscape.NodeSingular} */ node) => SHAPES[node.data("kind") % SHAPES.length].name,
      "background-color": (/** @type {cytoscape.NodeSingular} */ node) => colour(COLOURS[node.data("kind") % COLOURS.length]),
      color: colour("ink"),
      "font-size": 12,
      "text-valign": "bottom",
      "text-margin-y": 4,
      "text-max-width": "120px",
      "text-wrap": "ellipsis",
    },
  },
  {
    selector: "edge",
    style: {
      width: 1,
      "line-color": colour("line"),
      "curve-style": "bezier",
      "target-arrow-color": colour("faint"),
      color: colour("faint"),
      "font-size": 10,
      "text-rotation": "autorotate",
    },
  },
  { selector: "edge[type != '']", style: { label: "data(type)", "target-arrow-shape": "triangle" } },
  { selector: "node.path", style: { "border-width": 3, "border-color": colour("ink") } },
  { selector: "edge.path", style: { width: 3, "line-color": colour("ink"), "target-arrow-color": colour("ink") } },
  { selector: "node.selected", style: { "border-width": 3, "border-color": colour("accent") } },
];
