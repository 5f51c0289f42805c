import { html } from "./html.js";

const MOST_WORDS = 1500;

/**
 * What changed between two texts, by words. Texts of more than 1,500 words are shown one after the other.
 * @param {{ before: string, after: string }} props
 */
export function Diff({ before, after }) {
  return html`<div class="diff memory-text" dir="auto">${steps(before, after).map(([kind, text]) =>
    kind === "same" ? text : kind === "new" ? html`<ins>${text}</ins>` : html`<del>${text}</del>`,
  )}</div>`;
}

/**
 * The steps from one text to another, by a longest common subsequence of words.
 * @param {string} before
 * @param {string} after
 * @returns {["same" | "new" | "old", string][]}
 */
function steps(before, after) {
  const from = before.match(/\s+|\S+/g) ?? [];
  const to = after.match(/\s+|\S+/g) ?? [];
  if (from.length > 2 * MOST_WORDS || to.length > 2 * MOST_WORDS) return [["old", before], ["new", after]];
  const common = Array.from({ length: from.length + 1 }, () => new Uint16Array(to.length + 1));
  for (let i = from.length - 1; i >= 0; i--)
    for (let j = to.length - 1; j >= 0; j--)
      common[i][j] = from[i] === to[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  /** @type {["same" | "new" | "old", string][]} */
  const found = [];
  let i = 0;
  let j = 0;
  while (i < from.length || j < to.length) {
    if (i < from.length && j < to.length && from[i] === to[j]) {
      found.push(["same", from[i++]]);
      j++;
    } else if (j === to.length || (i < from.length && common[i + 1][j] >= common[i][j + 1])) found.push(["old", from[i++]]);
    else found.push(["new", to[j++]]);
  }
  return found;
}
