import { call } from "../../api.js";
import { go, route } from "../../state.js";
import { Bars } from "./bars.js";
import { bytes } from "../figures.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";

/** @import { Schemas } from "../../api.js" */

const PERIODS = { today: "Today", "7d": "7 days", "30d": "30 days", all: "400 days" };

/** @type {Record<string, number>} */
const DAYS = { today: 1, "7d": 7, "30d": 30, all: 400 };
const MOST_DAYS = 62;
const DAY_MS = 24 * 3600 * 1000;

/** @type {Record<string, string>} */
const QUOTAS = {
  requests_per_minute: "Requests in this minute",
  memories: "Memories",
  stored_bytes: "Stored bytes",
  jobs_per_day: "Jobs today",
  extractions_per_day: "Extractions today",
};

/** The calls of a period by operation and day, and what a key has used of its quotas. */
export function Usage() {
  const named = route.value.query.get("period") ?? "7d";
  const period = named in PERIODS ? named : "7d";
  const asked = useRequest((signal) => call("GET", `usage?period=${period}`, { signal }), [period]);
  /** @type {Schemas["UsageResponse"] | null} */
  const answer = asked.answer;
  const operations = Object.entries(answer?.operations ?? {}).sort(([, one], [, other]) => other.total - one.total);
  const days = Object.entries(answer?.by_day ?? {}).sort().reverse();
  return html`<section aria-label="Usage">
    <h2>Usage</h2>
    <p><label>Period <select value=${period} onChange=${(/** @type {any} */ event) => go("operations", { show: "usage", period: event.target.value })}>
      ${Object.entries(PERIODS).map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}</select></label></p>
    <${RequestState} ...${asked} />
    ${answer && !answer.enabled && html`<p>Calls are not counted: USAGE_TRACKING is off.</p>`}
    ${answer?.enabled && !operations.length && html`<p>No calls in this period.</p>`}
    ${
      operations.length > 0 &&
      html`${DAYS[period] > 1 && html`<${Bars} ...${barsOf(answer?.by_day ?? {}, DAYS[period])} />`}
      <div class="wide-table" tabindex="0"><table><thead><tr><th>Operation</th><th>Calls</th></tr></thead>
        <tbody>${operations.map(([name, { total }]) => html`<tr key=${name}><td><code>${name}</code></td><td>${total.toLocaleString("en")}</td></tr>`)}</tbody></table></div>
      <details><summary>By day as a table</summary><div class="wide-table" tabindex="0"><table><thead><tr><th>Day (UTC)</th><th>Calls</th></tr></thead>
        <tbody>${days.map(([day, calls]) => html`<tr key=${day}><td>${day}</td><td>${calls.toLocaleString("en")}</td></tr>`)}</tbody></table></div></details>`
    }
    ${answer?.extraction && answer.extraction.total_calls > 0 && html`<${Models} spent=${answer.extraction} />`}
    ${answer?.key_id && Object.keys(QUOTAS).some((name) => (/** @type {Record<string, any>} */ (answer.quotas))[name]) && html`<${Quotas} quotas=${answer.quotas} used=${answer.used} />`}
  </section>`;
}

/**
 * The calls of each day of the period, also of those without one; in a long period of each month.
 * @param {Record<string, number>} calls By day in UTC.
 * @param {number} days
 * @returns {{ label: string, counts: [string, number][] }}
 */
function barsOf(calls, days) {
  const all = Array.from({ length: days }, (_, ago) => new Date(Date.now() - (days - 1 - ago) * DAY_MS).toISOString().slice(0, 10));
  if (days <= MOST_DAYS) return { label: "Calls by day (UTC)", counts: all.map((day) => [day, calls[day] ?? 0]) };
  /** @type {Map<string, number>} */
  const months = new Map();
  for (const day of all) months.set(day.slice(0, 7), (months.get(day.slice(0, 7)) ?? 0) + (calls[day] ?? 0));
  return { label: "Calls by month (UTC)", counts: [...months] };
}

/** @param {{ spent: Schemas["ExtractionUsage"] }} props */
const Models = ({ spent }) =>
  html`<p>${spent.total_calls.toLocaleString("en")} calls of language models: ${spent.total_input_tokens.toLocaleString("en")} tokens in,
    ${spent.total_output_tokens.toLocaleString("en")} out${spent.estimated_cost_usd ? `, about $${spent.estimated_cost_usd.toFixed(2)}` : ""}.</p>`;

/**
 * Only quotas that the key has.
 * @param {{ quotas: Record<string, any>, used: Record<string, any> }} props
 */
const Quotas = ({ quotas, used }) =>
  html`<table class="figures"><caption class="faint">Quotas of this key</caption><tbody>${Object.entries(QUOTAS)
    .filter(([name]) => quotas[name])
    .map(([name, text]) => {
      const shown = name === "stored_bytes" ? bytes : (/** @type {number} */ count) => count.toLocaleString("en");
      return html`<tr key=${name}><th scope="row">${text}</th><td>${shown(used[name] ?? 0)} of ${shown(quotas[name])}</td></tr>`;
    })}</tbody></table>`;
