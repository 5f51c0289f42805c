import { html } from "./html.js";

const SHOWN_CHARS = 20_000;
const UNMARKED = new Set(
  "the and for are was were does did has have had what which who when where how that this with".split(" "),
);

/**
 * Stored text, never as markup. Of a very long text the beginning is shown.
 * @param {{ text: string, words?: string[] }} props
 */
export function StoredText({ text, words = [] }) {
  const shown =
    text.length > SHOWN_CHARS
      ? `${text.slice(0, SHOWN_CHARS)} … (${text.length.toLocaleString("en")} characters)`
      : text;
  return html`<div class="memory-text" dir="auto">${marked(shown, words)}</div>`;
}

/**
 * @param {string} text
 * @param {string[]} words
 */
function marked(text, words) {
  const wanted = words
    .map((word) => word.replace(/[?!.,]+$/, ""))
    .filter((word) => word.length > 2 && !UNMARKED.has(word.toLowerCase()))
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!wanted.length) return text;
  return text
    .split(new RegExp(`(${wanted.join("|")})`, "iu"))
    .map((part, place) => (place % 2 ? html`<mark>${part}</mark>` : part));
}

/** @type {[unit: Intl.RelativeTimeFormatUnit, seconds: number][]} */
const UNITS = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

/** @param {{ at: string }} props */
export function Time({ at }) {
  const seconds = (Date.parse(at) - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["minute", 60];
  const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.round(seconds / length), unit);
  return html`<time datetime=${at} title=${at}>${ago === "this minute" ? "just now" : ago}</time>`;
}
