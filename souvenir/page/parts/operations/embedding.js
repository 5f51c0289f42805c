import { call } from "../../api.js";
import { useState } from "../../vendor/preact-hooks.js";
import { changes } from "../changes.js";
import { Confirm } from "../confirm.js";
import { html } from "../html.js";
import { CancelJob, JobProgress, lastOfJobs, useWatch } from "../job-progress.js";
import { notify } from "../notice.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

/** The model in use, and the change to another one, which embeds every text again as a job. */
export function Embedding() {
  const [model, setModel] = useState("");
  const [asking, setAsking] = useState(false);
  const asked = useRequest(
    (signal) => Promise.all([call("GET", "health", { signal }), call("GET", "jobs?kind=reembed&limit=1", { signal })]),
    [changes.value, lastOfJobs()],
  );
  /** @type {[Schemas["HealthResponse"], Schemas["JobsResponse"]] | null} */
  const answer = asked.answer;
  const job = answer?.[1].jobs[0];
  const unfinished = job !== undefined && !job.finished_at;
  useWatch(unfinished, asked.again);
  const start = async () => {
    /** @type {Schemas["ReembedResponse"] | Schemas["JobAccepted"]} */
    const answer = await call("POST", "maintenance/reembed?wait_s=0", { body: { model: model || null } });
    changes.value += 1;
    notify("already_serving" in answer && answer.already_serving ? "This model is already in use." : "The texts are being embedded.");
  };
  /** @param {SubmitEvent} event */
  const ask = (event) => {
    event.preventDefault();
    setAsking(true);
  };
  return html`<section aria-label="Embedding model">
    <h2>Embedding model</h2>
    <${RequestState} error=${asked.error} slow=${asked.slow && !answer} />
    ${answer && html`<p>In use: <strong>${answer[0].model}</strong>, ${answer[0].dimension} dimensions, ${answer[0].embedding_backend}</p>`}
    ${unfinished && html`<p><${JobProgress} job=${job} /> <${CancelJob} job=${job} onChanged=${asked.again} /></p><p class="faint">Searches use the present model until all texts are embedded.</p>`}
    ${
      job?.finished_at &&
      html`<p>The last change ${job.status === "completed" ? "was completed" : job.status === "failed" ? "failed" : "was cancelled"} <${Time} at=${job.finished_at} />${job.status === "completed" && html`: <${JobProgress} job=${job} /> passages`}.</p>
      ${job.error && html`<p class="error" dir="auto">${job.error}</p>`}`
    }
    <form class="fields" onSubmit=${ask}><label>Model; empty for that of the settings
      <input value=${model} autocomplete="off" onInput=${(/** @type {any} */ event) => setModel(event.target.value)} /></label><button disabled=${unfinished}>Embed all texts again …</button></form>
    ${
      asking &&
      html`<${Confirm} label="Embed all texts again" word="embed" action="Embed" onConfirm=${start} onClose=${() => setAsking(false)}>
        <p>The texts of all namespaces are embedded with ${model ? html`<bdi>${model}</bdi>` : "the model of the settings"}. Searches go on with the present one until it is done.</p>
      <//>`
    }
  </section>`;
}
