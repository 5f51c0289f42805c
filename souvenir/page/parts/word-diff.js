import { useMemo } from "../vendor/preact-hooks.js";
import { html } from "./html.js";

// The table of the comparison has at most this many cells; longer texts are shown as replaced whole.
const MAX_CELLS = 1_000_000;

/** @typedef {{ kind: "same" | "gone" | "new", text: string }} Piece */

/**
 * What changed from one text to another, by words: a longest common subsequence.
 * @param {string} before
 * @param {string} after
 * @returns {Piece[]}
 */
export function wordDiff(before, after) {
  const [old, now] = [before.split(/(\s+)/), after.split(/(\s+)/)];
  let head = 0;
  while (head < Math.min(old.length, now.length) && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const gone = old.slice(head, old.length - tail);
  const fresh = now.slice(head, now.length - tail);
  /** @type {Piece[]} */
  const pieces = [
    { kind: "same", text: old.slice(0, head).join("") },
    ...middle(gone, fresh),
    { kind: "same", text: old.slice(old.length - tail).join("") },
  ];
  return pieces.filter(({ text }) => text);
}

/**
 * @param {string[]} gone
 * @param {string[]} fresh
 * @returns {Piece[]}
 */
function middle(gone, fresh) {
  if (gone.length * fresh.length > MAX_CELLS)
    return [
      { kind: "gone", text: gone.join("") },
      { kind: "new", text: fresh.join("") },
    ];
  const common = Array.from({ length: gone.length + 1 }, () => new Uint32Array(fresh.length + 1));
  for (let at = gone.length - 1; at >= 0; at -= 1)
    for (let to = fresh.length - 1; to >= 0; to -= 1)
      common[at][to] =
        gone[at] === fresh[to] ? common[at + 1][to + 1] + 1 : Math.max(common[at + 1][to], common[at][to + 1]);
  /** @type {Piece[]} */
  const pieces = [];
  let [at, to] = [0, 0];
  while (at < gone.length || to < fresh.length) {
    if (at < gone.length && gone[at] === fresh[to]) {
      pieces.push({ kind: "same", text: gone[at] });
      at += 1;
      to += 1;
    } else if (to === fresh.length || (at < gone.length && common[at + 1][to] >= common[at][to + 1])) {
      pieces.push({ kind: "gone", text: gone[at] });
      at += 1;
    } else {
      pieces.push({ kind: "new", text: fresh[to] });
      to += 1;
    }
  }
  return pieces;
}

/** @param {{ before: string, after: string }} props */
export function WordDiff({ before, after }) {
  const pieces = useMemo(() => wordDiff(before, after), [before, after]);
  return html`<div class="memory-text diff" dir="auto">${pieces.map(({ kind, text }) =>
    kind === "gone" ? html`<del>${text}</del>` : kind === "new" ? html`<ins>${text}</ins>` : text,
  )}</div>`;
}
