// Jobs of the service: following one, and its progress with a rate and the time that is left.
import { call } from "../api.js";
import { role } from "../state.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { arrived } from "./live.js";
import { Problem } from "./problem.js";
import { useRequest } from "./request.js";

/** @import { Schemas } from "../api.js" */
/** @typedef {Schemas["JobRecord"]} Job */

/** Progress is no event, so a job that runs is asked for. */
export const WATCH_MS = 1000;
const WINDOW_S = 30;
const FIRST_S = 2;

/** How much of each unfinished job was done, when this page asked. @type {Map<string, { at: number, done: number }[]>} */
const seen = new Map();

/** The id of the last event about jobs, which changes when one begins or ends. */
export const lastOfJobs = () => arrived.value.find(({ type }) => type.startsWith("job.") || type.startsWith("extraction."))?.id ?? 0;

/**
 * Call again and again while something is unfinished and the page is visible.
 * @param {boolean} unfinished
 * @param {() => void} again
 * @param {number} [every_ms]
 */
export function useWatch(unfinished, again, every_ms = WATCH_MS) {
  useEffect(() => {
    if (!unfinished) return;
    const timer = setInterval(() => !document.hidden && again(), every_ms);
    return () => clearInterval(timer);
  }, [unfinished]);
}

/**
 * Follow a job until it is finished.
 * @param {string} id
 */
export function useJob(id) {
  const asked = useRequest((signal) => call("GET", `jobs/${encodeURIComponent(id)}`, { signal }), [id, lastOfJobs()]);
  /** @type {Job | null} */
  const job = asked.answer;
  useWatch(job !== null && !job.finished_at, asked.again);
  return { ...asked, answer: job };
}

/**
 * Units per second: over the last half minute that this page saw, or else since the job began. Null while it is not known.
 * @param {Job} job
 */
function rateOf(job) {
  const now = Date.now() / 1000;
  const samples = (seen.get(job.id) ?? []).filter(({ at }) => now - at < WINDOW_S);
  if (samples.at(-1)?.done !== job.done) samples.push({ at: now, done: job.done });
  if (job.finished_at) seen.delete(job.id);
  else seen.set(job.id, samples);
  const first = samples[0];
  if (now - first.at >= FIRST_S && job.done > first.done) return (job.done - first.done) / (now - first.at);
  const running_s = job.started_at ? now - Date.parse(job.started_at) / 1000 : 0;
  return job.done > 0 && running_s >= FIRST_S ? job.done / running_s : null;
}

/**
 * How far a job is; of a finished one, how much it did.
 * @param {{ job: Job }} props
 */
export function JobProgress({ job }) {
  const { done, total } = job;
  const amount = (/** @type {number} */ value) => value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
  if (job.finished_at) return html`${amount(done)}${total !== null && total > done ? ` of ${amount(total)}` : ""}`;
  const rate = job.status === "running" ? rateOf(job) : null;
  const said = [
    total ? `${amount(done)} of ${amount(total)} (${Math.floor((100 * done) / total)} %)` : done ? `${amount(done)} done` : "",
    rate ? `${amount(rate)} per second` : "",
    rate && total && total > done ? `about ${duration((total - done) / rate)} left` : "",
    job.status === "queued" ? "waits for its turn" : "",
    job.waits_for ? `waits: ${job.waits_for}` : "",
  ].filter(Boolean);
  return html`<progress max=${total || undefined} value=${total ? done : undefined} aria-label=${`Progress of ${job.kind}`}></progress> <span>${said.join(" · ")}</span>`;
}

/**
 * A button that cancels an unfinished job.
 * @param {{ job: Job, onChanged: () => void }} props
 */
export function CancelJob({ job, onChanged }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  if (job.finished_at || role.value === "read-only") return null;
  const cancel = async () => {
    try {
      await call("POST", `jobs/${job.id}/cancel`);
      setError(null);
    } catch (failed) {
      setError(failed);
    }
    onChanged();
  };
  return html`<button type="button" disabled=${job.cancel_requested} onClick=${cancel}>${job.cancel_requested ? "Being cancelled …" : "Cancel"}</button><${Problem} error=${error} />`;
}

/**
 * A length of time as people say it.
 * @param {number} seconds
 */
export function duration(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toLocaleString("en", { maximumFractionDigits: 1 })} h`;
}

/**
 * How long a finished job ran.
 * @param {Job} job
 */
export const took = ({ started_at: from, finished_at: to }) => (from && to ? Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000) : null);
