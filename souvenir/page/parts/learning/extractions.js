import { call } from "../../api.js";
import { address, role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { changes } from "../changes.js";
import { html } from "../html.js";
import { arrived } from "../live.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["ListedExtraction"]} Listed */

const AT_ONCE = 10;
const MAX_SHOWN = 500;

/** The id of the last event about extractions, which a request depends on. */
export const useLastExtractionEvent = () => arrived.value.find(({ type }) => type.startsWith("extraction."))?.id ?? 0;

/** The extractions of the namespace, newest first, as they are queued, read and completed. */
export function Extractions() {
  const [shown, setShown] = useState(AT_ONCE);
  const asked = useRequest((signal) => call("GET", `memory/extract?limit=${shown}`, { signal }), [shown, useLastExtractionEvent(), changes.value]);
  /** @type {Schemas["ExtractionPage"] | null} */
  const answer = asked.answer;
  return html`<section aria-label="Extractions">
    <h2>Extractions</h2>
    <${RequestState} error=${asked.error} slow=${asked.slow && !answer} />
    ${answer && role.value !== "admin" && html`<p class="faint">Only the extractions of this key are listed${answer.total ? "" : ", and there is none"}.</p>`}
    ${answer && !answer.total && role.value === "admin" && html`<p>Nothing was extracted yet, or is kept any more. Conversations that programs send to be learned from appear here at once.</p>`}
    ${
      answer &&
      answer.total > 0 &&
      html`<ul class="feed">${answer.extractions.map(
        (each) => html`<li key=${each.job_id}><a href=${address("learning", { job: each.job_id })}>${stateOf(each)}</a>
          ${each.source && html` · <bdi>${each.source}</bdi>`} <span class="faint">· ${countsOf(each)}<${Time} at=${each.completed_at ?? each.created_at} /></span></li>`,
      )}</ul>
      ${answer.total > shown && shown < MAX_SHOWN && html`<p><button type="button" onClick=${() => setShown(Math.min(MAX_SHOWN, shown + 40))}>Show more of ${answer.total.toLocaleString("en")}</button></p>`}`
    }
  </section>`;
}

/**
 * What became of an extraction, in words.
 * @param {Listed} extraction
 */
export function stateOf(extraction) {
  const { status, approval, dry_run: dry, undone } = extraction;
  if (status === "queued") return extraction.waits_for ? "Is tried again" : "Waits for its turn";
  if (status === "running") return extraction.waits_for ? "Is tried again" : "Is being read";
  if (status === "failed") return "Failed";
  if (status === "cancelled") return "Cancelled";
  if (extraction.model_failed) return "The model failed";
  if (approval) return "Waits for approval";
  if (undone) return "Undone";
  if (dry) return extraction.rerun_of ? "Rerun: proposals" : "Proposals";
  return "Learned";
}

/** @param {Listed} extraction */
function countsOf(extraction) {
  const { counts } = extraction;
  if (!counts || extraction.model_failed || extraction.approval) return "";
  const would = extraction.dry_run ? "would be " : "";
  const parts = [
    [counts.stored_count, "added"],
    [counts.updated_count, "updated"],
    [counts.deleted_count, "archived"],
  ].filter(([count]) => count);
  if (!parts.length) return counts.extracted_count ? "nothing new · " : "nothing found · ";
  return `${parts.map(([count, word], place) => `${count} ${place ? "" : would}${word}`).join(", ")} · `;
}
