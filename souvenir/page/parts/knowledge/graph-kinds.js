import { html } from "../html.js";

/**
 * The shapes of nodes by the place of their kind in the legend, each with a character that looks like it.
 * @type {{ name: import("../../vendor/cytoscape.js").default.Css.NodeShape, sign: string }[]}
 */
export const SHAPES = [
  { name: "ellipse", sign: "●" },
  { name: "rectangle", sign: "■" },
  { name: "diamond", sign: "◆" },
  { name: "triangle", sign: "▲" },
  { name: "hexagon", sign: "⬢" },
  { name: "star", sign: "★" },
  { name: "pentagon", sign: "⬟" },
];

export const COLOURS = ["meaning", "words", "time", "speaker"];

/** The kinds in an address. @param {string | null} text */
export const kindsOf = (text) => (text ? text.split("|") : []);

/** Kinds as they stand in an address. @param {string[]} kinds */
export const kindsText = (kinds) => kinds.join("|");

/**
 * The kinds of nodes with their signs; a kind that is not checked is not shown.
 * @param {{ kinds: string[], hidden: string[], onChange: (hidden: string[]) => void }} props
 */
export const Legend = ({ kinds, hidden, onChange }) =>
  html`<fieldset class="legend"><legend>Kinds</legend>${kinds.map(
    (kind, place) => html`<label key=${kind}><input type="checkbox" checked=${!hidden.includes(kind)}
        onChange=${() => onChange(hidden.includes(kind) ? hidden.filter((each) => each !== kind) : [...hidden, kind])} />
      <span><span class=${`kind-${place % COLOURS.length}`} aria-hidden="true">${SHAPES[place % SHAPES.length].sign}</span> <bdi>${kind}</bdi></span></label>`,
  )}</fieldset>`;
