import { call } from "../../api.js";
import { address, role, route } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { changes } from "../changes.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { useWatch } from "../job-progress.js";
import { Change, Finding, targetOf, textOf, Verdict } from "./action.js";
import { Difference } from "./diff.js";
import { stateOf, useLastExtractionEvent } from "./extractions.js";
import { COMMIT, Follow } from "./follow.js";
import { Proposals } from "./proposals.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @import { Action } from "./action.js" */
/** @typedef {Schemas["ExtractJob"]} Job */

/** An opened extraction: its progress, or its findings next to the words that they came from. @param {{ id: string }} props */
export function OpenedExtraction({ id }) {
  const asked = useRequest((signal) => call("GET", `memory/extract/${encodeURIComponent(id)}`, { signal }), [id, useLastExtractionEvent(), changes.value]);
  /** @type {Job | null} */
  const job = asked.answer?.job_id === id ? asked.answer : null;
  const unfinished = job !== null && !job.completed_at;
  useWatch(unfinished, asked.again);
  const other = route.value.query.get("other");
  return html`<p><a href=${address("learning")}>All extractions and conflicts</a></p>
    <${RequestState} error=${asked.error} slow=${asked.slow && !job} />
    ${
      job &&
      html`<section aria-label="Extraction">
        <h2>${stateOf(job)}</h2>
        <${About} job=${job} />
        ${unfinished && html`<${Progress} job=${job} onChange=${asked.again} />`}
        ${other ? html`<${Difference} key=${other} first=${id} second=${other} />` : html`<${Findings} key=${`${id} ${job.completed_at}`} job=${job} />`}
        ${!unfinished && html`<${Follow} key=${id} job=${job} />`}
      </section>`
    }`;
}

/** @param {{ job: Job }} props */
function About({ job }) {
  const error = job.error ?? job.result?.error_message;
  return html`<p class="faint">${job.source ? html`<bdi>${job.source}</bdi> · ` : "The whole namespace · "}${job.context === COMMIT ? "chosen proposals" : counted(job.message_length, "character", "characters")} · <${Time} at=${job.created_at} />${job.model && html` · by <bdi>${job.model}</bdi>`}${job.mode === "fallback_add" && " · without a model"}${job.rerun_of && html` · a rerun of <a href=${address("learning", { job: job.rerun_of })}>an earlier extraction</a>`}</p>
    ${error && html`<p class="error" dir="auto">${error}</p>`}
    ${job.waits_for && html`<p class="warning" dir="auto">Tried again soon: ${job.waits_for}</p>`}
    ${job.result?.skipped_reason === "empty_after_hygiene" && html`<p>The conversation had nothing to learn from: only recalled text, output of tools, or nothing at all.</p>`}`;
}

/** @param {{ job: Job, onChange: () => void }} props */
function Progress({ job, onChange }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const cancel = async () => {
    try {
      await call("DELETE", `memory/extract/${job.job_id}`);
      setError(null);
    } catch (failed) {
      setError(failed);
    }
    onChange();
  };
  return html`<p role="status">${job.status === "queued" ? `${counted(job.queue_depth, "extraction waits", "extractions wait")}.` : html`<progress aria-label="Progress" max=${job.total ?? undefined} value=${job.total ? job.done : undefined}></progress>`}</p>
    <${RequestState} error=${error} slow=${false} />
    ${role.value !== "read-only" && html`<p><button type="button" onClick=${cancel}>Cancel</button></p>`}`;
}

/** @param {{ job: Job }} props */
function Findings({ job }) {
  const actions = /** @type {Action[]} */ (job.result?.actions ?? []);
  const waits = Boolean(job.completed_at && !job.model_failed && (job.dry_run || job.approval));
  const quotes = useRequest(actions.length ? (signal) => call("GET", `memory/extract/${job.job_id}/quotes`, { signal }) : null, [job.job_id]);
  const targets = [...new Set(actions.map(targetOf).filter((id) => id !== null))];
  const memories = useRequest(targets.length ? (signal) => call("POST", "memory/get-batch", { body: { ids: targets }, signal }) : null, [targets.join(), changes.value]);
  if (!job.completed_at) return null;
  /** @type {Map<number, Schemas["FactQuote"]>} */
  const quoted = new Map((quotes.answer?.quotes ?? []).map((/** @type {Schemas["FactQuote"]} */ each) => [each.ordinal, each]));
  /** @type {Map<number, string>} */
  const texts = new Map((memories.answer?.memories ?? []).map((/** @type {Schemas["MemoryRecord"]} */ each) => [each.id, each.text]));
  if (!actions.length) return html`${!job.model_failed && job.status === "completed" && html`<p>Nothing worth remembering was found, or you may not read it.</p>`}`;
  return html`<${RequestState} error=${quotes.error ?? memories.error} slow=${false} />
    ${
      waits
        ? html`<${Proposals} job=${job} actions=${actions} quotes=${quoted} texts=${texts} />`
        : html`<ul class="proposals">${actions.map(
            (action) => html`<${Finding} key=${action.ordinal} quote=${quoted.get(action.ordinal)}>
              <p><${Verdict} action=${action} would=${false} undone=${Boolean(job.undone ?? job.result?.undone)} quote=${quoted.get(action.ordinal)} /></p>
              <${Change} action=${action} text=${textOf(action)} target=${texts.get(targetOf(action) ?? 0)} />
            <//>`,
          )}</ul>`
    }`;
}
