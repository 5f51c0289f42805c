import { call } from "../../api.js";
import { go, route } from "../../state.js";
import { changes } from "../changes.js";
import { html } from "../html.js";
import { CancelJob, duration, JobProgress, lastOfJobs, took, useWatch } from "../job-progress.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const AT_ONCE = 20;
const STATUSES = ["queued", "running", "completed", "failed", "cancelled"];
const KINDS = ["build", "compact", "consolidate", "deduplicate", "describe", "enforce_policies", "erase", "extract", "import", "import_folder", "prune", "reembed", "rename_folder", "rescan", "split", "sync"];

/** The jobs of the namespace, newest first; followed while one is not finished. Filters and length are in the address. */
export function Jobs() {
  const { query } = route.value;
  const kept = { show: "jobs", status: query.get("status"), kind: query.get("kind") };
  const most = Math.min(500, Math.max(AT_ONCE, Number(query.get("most")) || 0));
  const filters = new URLSearchParams({ limit: String(most), ...(kept.status ? { status: kept.status } : {}), ...(kept.kind ? { kind: kept.kind } : {}) }).toString();
  const asked = useRequest((signal) => call("GET", `jobs?${filters}`, { signal }), [filters, changes.value, lastOfJobs()]);
  /** @type {Schemas["JobsResponse"] | null} */
  const answer = asked.answer;
  useWatch(Boolean(answer?.jobs.some(({ finished_at }) => !finished_at)), asked.again);
  /** @param {string} name */
  const field = (name) => (/** @type {any} */ event) => go("operations", { ...kept, [name]: event.target.value });
  const filtered = kept.status || kept.kind;
  return html`<section aria-label="Jobs">
    <h2>Jobs</h2>
    <div class="field-row">
      <label>Status <select value=${kept.status ?? ""} onChange=${field("status")}><option value="">all</option>${STATUSES.map((each) => html`<option key=${each}>${each}</option>`)}</select></label>
      <label>Kind <select value=${kept.kind ?? ""} onChange=${field("kind")}><option value="">all</option>${KINDS.map((each) => html`<option key=${each} value=${each}>${each.replaceAll("_", " ")}</option>`)}</select></label>
    </div>
    <${RequestState} error=${asked.error} slow=${asked.slow && !answer} />
    ${answer && !answer.jobs.length && html`<p>${filtered ? "No such job." : "No job has run yet. Imports, extraction and changes of the model run as jobs."}</p>`}
    ${
      answer &&
      answer.jobs.length > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Kind</th><th>Status</th><th>Progress</th><th>Began</th><th>Finished</th></tr></thead>
        <tbody>${answer.jobs.map((job) => html`<${Row} key=${job.id} job=${job} onChanged=${asked.again} />`)}</tbody></table></div>
      ${answer.total > answer.jobs.length && most < 500 && html`<p><button type="button" onClick=${() => go("operations", { ...kept, most: 500 })}>Show more of ${answer.total.toLocaleString("en")}</button></p>`}`
    }
  </section>`;
}

/** @param {{ job: Schemas["JobRecord"], onChanged: () => void }} props */
function Row({ job, onChanged }) {
  const ran_s = took(job);
  return html`<tr><td>${job.kind.replaceAll("_", " ")}</td>
    <td>${job.cancel_requested && !job.finished_at ? "being cancelled" : job.status}${job.error && html`<div class="error" dir="auto">${job.error}</div>`}
      ${job.result && html`<details><summary>Result</summary><pre tabindex="0" dir="auto">${JSON.stringify(job.result, null, 2)}</pre></details>`}</td>
    <td><${JobProgress} job=${job} /> <${CancelJob} job=${job} onChanged=${onChanged} /></td><td><${Time} at=${job.started_at ?? job.created_at} /></td>
    <td>${job.finished_at && html`<${Time} at=${job.finished_at} />`}${ran_s !== null && html` <span class="faint">after ${duration(ran_s)}</span>`}</td></tr>`;
}
