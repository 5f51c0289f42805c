import { call } from "../api.js";
import { role } from "../state.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { changes } from "./changes.js";
import { html } from "./html.js";
import { RequestState, useRequest } from "./request.js";
import { Time } from "./text.js";

/** @import { Schemas } from "../api.js" */

const LATEST = 20;
const WATCH_MS = 1000;

/** The latest jobs; followed while one is not finished. */
export function Jobs() {
  const asked = useRequest((signal) => call("GET", `jobs?limit=${LATEST}`, { signal }), [changes.value]);
  /** @type {Schemas["JobsResponse"] | null} */
  const answer = asked.answer;
  const [error, setError] = useState("");
  const unfinished = answer?.jobs.some(({ finished_at }) => !finished_at);
  useEffect(() => {
    if (!unfinished) return;
    const timer = setInterval(asked.again, WATCH_MS);
    return () => clearInterval(timer);
  }, [unfinished]);
  /** @param {string} id */
  const cancel = async (id) => {
    try {
      await call("POST", `jobs/${id}/cancel`);
      setError("");
    } catch (failed) {
      setError(/** @type {Error} */ (failed).message);
    }
    asked.again();
  };
  return html`<section aria-label="Jobs">
    <h2>Jobs</h2>
    <${RequestState} error=${error || asked.error} slow=${asked.slow && !answer} />
    ${answer && !answer.jobs.length && html`<p>No job has run yet. Imports, extraction and changes of the model run as jobs.</p>`}
    ${
      answer &&
      answer.jobs.length > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Kind</th><th>Status</th><th>Progress</th><th>Started</th><th></th></tr></thead>
        <tbody>${answer.jobs.map(
          (job) => html`<tr key=${job.id}><td>${job.kind}</td><td>${job.cancel_requested && !job.finished_at ? "being cancelled" : job.status}${job.error && html`<div class="error" dir="auto">${job.error}</div>`}</td>
          <td><${Progress} job=${job} /></td><td><${Time} at=${job.started_at ?? job.created_at} /></td>
          <td>${!job.finished_at && !job.cancel_requested && role.value !== "read-only" && html`<button type="button" onClick=${() => cancel(job.id)}>Cancel</button>`}</td></tr>`,
        )}</tbody></table></div>`
    }
  </section>`;
}

/** @param {{ job: Schemas["JobRecord"] }} props */
function Progress({ job }) {
  if (job.finished_at || !job.total) return job.done.toLocaleString("en");
  return html`<progress max=${job.total} value=${job.done} aria-label="Progress"></progress> ${job.done.toLocaleString("en")} of ${job.total.toLocaleString("en")}`;
}
