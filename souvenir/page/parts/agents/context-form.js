import { html } from "../html.js";

const LEAST_TOKENS = 250;
const MOST_TOKENS = 16_000;
const DEFAULT_TOKENS = 2000;
const STEPS = 60;

/** The tokens of a place of the slider, which is logarithmic. @param {number} place */
const tokensAt = (place) => Math.round((LEAST_TOKENS * (MOST_TOKENS / LEAST_TOKENS) ** (place / STEPS)) / 10) * 10;

/** @param {number} tokens */
const placeOf = (tokens) => Math.round((STEPS * Math.log(tokens / LEAST_TOKENS)) / Math.log(MOST_TOKENS / LEAST_TOKENS));

/** The budget in an address, within the limits of the slider. @param {string} text */
export const tokensOf = (text) => Math.min(MOST_TOKENS, Math.max(LEAST_TOKENS, Math.round(Number(text)) || DEFAULT_TOKENS));

/** @param {Event} event */
const valueOf = (event) => /** @type {HTMLInputElement} */ (event.target).value;

/**
 * The question, the budget and the options of a context. Each input is a change.
 * @param {{ given: Record<string, string>, tokens: number, onChange: (change: Record<string, string | number | null>) => void }} props
 */
export function ContextForm({ given, tokens, onChange }) {
  const chosen = ["session", "user", "shape"].filter((name) => given[name]);
  return html`<form class="context-form" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <label>Question that the model will be asked <input dir="auto" autocomplete="off" value=${given.ask}
      onInput=${(/** @type {Event} */ event) => onChange({ ask: valueOf(event) })} /></label>
    <label>Budget: ${tokens.toLocaleString("en")} tokens <input type="range" min="0" max=${STEPS} value=${placeOf(tokens)} aria-valuetext=${`${tokens} tokens`}
      onInput=${(/** @type {Event} */ event) => onChange({ tokens: tokensAt(Number(valueOf(event))) })} /></label>
    <details open=${chosen.length > 0}><summary>Options${chosen.length > 0 && `: ${chosen.join(", ")}`}</summary>
      <div class="fields">
        <label>Session of the question (its own messages are left out) <input autocomplete="off" value=${given.session} onInput=${(/** @type {Event} */ event) => onChange({ session: valueOf(event).trim() })} /></label>
        <label>Only with the user <input dir="auto" autocomplete="off" value=${given.user} onInput=${(/** @type {Event} */ event) => onChange({ user: valueOf(event).trim() })} /></label>
        <label>Shape <select value=${given.shape} onChange=${(/** @type {Event} */ event) => onChange({ shape: valueOf(event) })}>
          <option value="">by the question</option><option value="excerpts">excerpts</option><option value="outline">outline</option></select></label>
      </div></details>
  </form>`;
}
