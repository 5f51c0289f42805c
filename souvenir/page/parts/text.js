import { address } from "../state.js";
import { html } from "./html.js";

const SHOWN_CHARS = 20_000;
const SPACELESS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
const UNMARKED = new Set(
  "the and for are was were does did has have had what which who when where how that this with".split(" "),
);

/** Whether only the beginning of a text is shown. @param {string} text */
export const isLong = (text) => text.length > SHOWN_CHARS;

/**
 * Stored text, never as markup. Of a very long text the beginning is shown, unless `whole`.
 * @param {{ text: string, words?: string[], stems?: string[], whole?: boolean }} props Words to mark, or stems of the service's analyser.
 */
export function StoredText({ text, words = [], stems = [], whole = false }) {
  const shown =
    isLong(text) && !whole
      ? `${text.slice(0, SHOWN_CHARS)} … (${text.length.toLocaleString("en")} characters)`
      : text;
  const pieces = stems.length ? withStems(shown, stems) : withWords(shown, words);
  return html`<div class="memory-text" dir="auto">${pieces.map((piece, place) => (place % 2 ? html`<mark>${legible(piece)}</mark>` : legible(piece)))}</div>`;
}

/** The characters that change the direction of a text, by which it could be read in another order than it is stored. @type {Record<string, string>} */
const CONTROLS = {
  "\u202a": "LRE",
  "\u202b": "RLE",
  "\u202c": "PDF",
  "\u202d": "LRO",
  "\u202e": "RLO",
  "\u2066": "LRI",
  "\u2067": "RLI",
  "\u2068": "FSI",
  "\u2069": "PDI",
};

/** A text with visible marks instead of these characters. @param {string} text */
export function legible(text) {
  const pieces = text.split(/([\u202a-\u202e\u2066-\u2069])/);
  return pieces.length === 1 ? text : pieces.map((piece, place) => (place % 2 ? html`<span class="faint">⟨${CONTROLS[piece]}⟩</span>` : piece));
}

/**
 * The text in pieces; every second one is to be marked.
 * @param {string} text
 * @param {string[]} words
 */
function withWords(text, words) {
  const wanted = words
    .map((word) => word.replace(/[?!.,]+$/, ""))
    .filter((word) => word.length > 2 && !UNMARKED.has(word.toLowerCase()))
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return wanted.length ? text.split(new RegExp(`(${wanted.join("|")})`, "iu")) : [text];
}

/**
 * The same for the words that a stem may come from.
 * @param {string} text
 * @param {string[]} stems Folded, such as `happi` of "happy", or two characters of a text without spaces between words.
 */
function withStems(text, stems) {
  // A stem can lack or change the last vowel of its words, and short stems have short endings: not `doghouse` for `dog`.
  const beginnings = stems.map((stem) => stem.replace(/(?<=...)[iey]$/, ""));
  const pieces = [""];
  text.split(/([\p{L}\p{N}]+)/u).forEach((piece, place) => {
    const word = folded(piece);
    const spaced = !SPACELESS.test(word);
    const hit = place % 2 && beginnings.some((start) => (spaced ? word.startsWith(start) && word.length <= 2 * start.length + 1 : word.includes(start)));
    if (hit) pieces.push(piece, "");
    else pieces[pieces.length - 1] += piece;
  });
  return pieces;
}

/** @param {string} text */
const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

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

/** The id of a session or a message as it is read: of a UUID the first part. @param {string} id */
export const shortened = (id) => (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(id) ? `${id.slice(0, 8)}…` : id);

/** @param {{ id: number }} props */
export const MemoryLink = ({ id }) => html`<a href=${address("memories", { memory: id })}>memory ${id}</a>`;

/** Who said a message, with the role unless it is a user. @param {{ message: { role: string, name?: string | null, user?: string | null } }} props */
export function Speaker({ message: { role, name, user } }) {
  if (role === "user") return html`<bdi>${name ?? user ?? role}</bdi>`;
  return name ? html`<bdi>${name}</bdi> (${role})` : role;
}
