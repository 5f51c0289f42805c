import { address, namespace } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { Time } from "./text.js";

/** @import { Schemas } from "../api.js" */

const NEAR_CHARS = 200;

/** The words that something was learned from, marked in their turn. @param {{ quote: Schemas["QuoteRecord"] }} props */
export function Quote({ quote }) {
  const [whole, setWhole] = useState(false);
  const before = whole ? quote.before : tail(quote.before);
  const after = whole ? quote.after : head(quote.after);
  const shortened = before !== quote.before || after !== quote.after;
  return html`<blockquote class=${`turn ${quote.role}`}>
    <div class="faint"><bdi>${quote.speaker ?? (quote.role === "unknown" ? "text" : quote.role)}</bdi>${quote.at && html` · <${Time} at=${quote.at} />`}
      ${quote.session_id && html` · <${TurnLink} quote=${quote} />`}</div>
    <div class="memory-text" dir="auto">${before}${quote.words && html`<mark>${quote.words}</mark>`}${after}</div>
    ${shortened && html`<button type="button" onClick=${() => setWhole(true)}>Show more of the turn</button>`}
  </blockquote>`;
}

/** @param {{ quote: Schemas["QuoteRecord"] }} props */
function TurnLink({ quote }) {
  const { session_id: session, message_id: message } = quote;
  if (!message) return html`session <bdi>${session}</bdi>`;
  return html`<a href=${address("agents", { in: namespace(), show: "conversations", session, message })}>this turn of the session <bdi>${session}</bdi></a>`;
}

/** @param {string} text */
const tail = (text) => (text.length > NEAR_CHARS ? `… ${text.slice(text.indexOf(" ", text.length - NEAR_CHARS) + 1)}` : text);

/** @param {string} text */
const head = (text) => (text.length > NEAR_CHARS ? `${text.slice(0, Math.max(text.lastIndexOf(" ", NEAR_CHARS), 1))} …` : text);
