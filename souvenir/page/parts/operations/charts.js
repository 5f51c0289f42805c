import { call } from "../../api.js";
import { namespace } from "../../state.js";
import { useEffect } from "../../vendor/preact-hooks.js";
import { signal } from "../../vendor/preact-signals.js";
import { Lazy } from "../lazy.js";
import { bytes } from "../figures.js";
import { html } from "../html.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {{ label: string, names: string[], values: (number | null)[][], text: (value: number) => string, whole?: boolean }} Figures One chart. */
/** @typedef {{ at: number, of: string, metrics: Schemas["MetricsResponse"] }} Sample `at` in seconds since 1970. */

const EVERY_MS = 2000;
const KEPT = 300;
const ROUTES = 15;
const LISTED = 10;
/** What this page asks by itself to draw the charts. */
const OWN = "GET /metrics";

/** The newest figures, kept while the page is open. */
const samples = signal(/** @type {Sample[]} */ ([]));

const chart = () => import("./chart.js").then((module) => module.Chart);

/** Load, latency and size over the last ten minutes, from the service's own figures. */
export function Charts() {
  useEffect(() => {
    const cancelled = new AbortController();
    const sample = async () => {
      if (document.hidden) return;
      try {
        const metrics = await call("GET", "metrics", { signal: cancelled.signal });
        samples.value = [...samples.value, { at: Date.now() / 1000, of: namespace(), metrics }].slice(-KEPT);
      } catch {
        // The bar says that the service cannot be reached; the chart has a gap there.
      }
    };
    void sample();
    const timer = setInterval(sample, EVERY_MS);
    return () => {
      clearInterval(timer);
      cancelled.abort();
    };
  }, []);
  const taken = samples.value;
  const times = taken.map(({ at }) => at);
  /** @param {(metrics: Schemas["MetricsResponse"]) => number | null} of */
  const line = (of) => taken.map(({ metrics }) => of(metrics));
  /** @param {string} route */
  const latency = (route) => line(({ routes }) => routes[route]?.p95_latency_ms ?? null);
  const stored = taken.map(({ of, metrics }) => (of === namespace() ? metrics.memory.current_total : null));
  /** @type {Figures[]} */
  const shown = [
    { label: "Requests per second", names: ["all", "errors"], values: [rates(taken, requestsOf), rates(taken, ({ requests }) => requests.error_count)], text: plain },
    { label: "In flight, with those of this page", names: ["requests", "extractions waiting"], values: [line(({ requests }) => requests.active_http_requests), line(({ extract }) => extract.queue_depth)], text: plain, whole: true },
    { label: "Latency, 95 % of the newest 512", names: ["search", "add"], values: [latency("POST /search"), latency("POST /memory/add")], text: ms },
    { label: "Database and its log", names: ["size"], values: [line(({ disk }) => disk.database_bytes + disk.log_bytes)], text: bytes },
    { label: "Memories of the namespace", names: ["memories"], values: [stored], text: plain, whole: true },
    { label: "Memory of the process", names: ["memory"], values: [line(({ memory }) => memory.process.rss_kb * 1024)], text: bytes },
  ];
  return html`<section aria-label="Load"><h2>Load</h2>
    <p class="faint">The service's own figures, every ${EVERY_MS / 1000} s while this is open.</p>
    <div class="charts">${shown.map((each) => html`<${Lazy} key=${each.label} load=${chart} times=${times} ...${each} />`)}</div>
    ${taken.length > 0 && html`<${Values} times=${times} figures=${shown} /><${Routes} routes=${taken[taken.length - 1].metrics.routes} />`}
  </section>`;
}

const ms = (/** @type {number} */ value) => `${value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })} ms`;
const plain = (/** @type {number} */ value) => value.toLocaleString("en", { maximumFractionDigits: 1 });

/**
 * The newest values of the charts as text.
 * @param {{ times: number[], figures: Figures[] }} props
 */
function Values({ times, figures }) {
  const columns = figures.flatMap(({ label, names, values, text }) =>
    names.map((name, place) => ({ title: names.length > 1 ? `${label}: ${name}` : label, values: values[place], text })),
  );
  const rows = times.map((at, place) => ({ at, place })).slice(-LISTED).reverse();
  return html`<details><summary>The newest values as a table</summary>
    <div class="wide-table" tabindex="0"><table><thead><tr><th>Time</th>${columns.map(({ title }) => html`<th key=${title}>${title}</th>`)}</tr></thead>
    <tbody>${rows.map(
      ({ at, place }) => html`<tr key=${at}><td>${new Date(at * 1000).toLocaleTimeString("en-GB")}</td>${columns.map(({ title, values, text }) => {
        const value = values[place];
        return html`<td key=${title}>${value === null ? "" : text(value)}</td>`;
      })}</tr>`,
    )}</tbody></table></div></details>`;
}

/**
 * What was counted per second since the sample before; null where the service restarted.
 * @param {Sample[]} taken
 * @param {(metrics: Schemas["MetricsResponse"]) => number} count
 */
const rates = (taken, count) =>
  taken.map(({ at, metrics }, place) => {
    const before = taken[place - 1];
    if (!before || metrics.uptime_sec < before.metrics.uptime_sec) return null;
    return Math.max(0, count(metrics) - count(before.metrics)) / (at - before.at);
  });

/** The requests without those for these charts. @param {Schemas["MetricsResponse"]} metrics */
const requestsOf = ({ requests, routes }) => requests.total_count - (routes[OWN]?.count ?? 0);

/** @param {{ routes: Schemas["MetricsResponse"]["routes"] }} props */
function Routes({ routes }) {
  const busiest = Object.entries(routes)
    .filter(([route]) => route !== OWN)
    .sort(([, one], [, other]) => other.count * other.avg_latency_ms - one.count * one.avg_latency_ms)
    .slice(0, ROUTES);
  if (!busiest.length) return null;
  const ms = (/** @type {number} */ value) => value.toLocaleString("en", { maximumFractionDigits: 1 });
  return html`<h3>Routes that took most of the time</h3><div class="wide-table" tabindex="0"><table><thead><tr><th>Route</th><th>Requests</th><th>Errors</th><th>Mean, ms</th><th>95 %, ms</th></tr></thead>
    <tbody>${busiest.map(
      ([route, { count, error_count: errors, avg_latency_ms: mean, p95_latency_ms: p95 }]) =>
        html`<tr key=${route}><td><code>${route}</code></td><td>${count.toLocaleString("en")}</td><td>${errors.toLocaleString("en")}</td><td>${ms(mean)}</td><td>${ms(p95)}</td></tr>`,
    )}</tbody></table></div>`;
}
