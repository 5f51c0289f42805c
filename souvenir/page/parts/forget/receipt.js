import { ApiError } from "../../api.js";
import { address, go } from "../../state.js";
import { useEffect } from "../../vendor/preact-hooks.js";
import { Copy } from "../copy.js";
import { KINDS } from "./kinds.js";
import { html } from "../html.js";
import { JobProgress, useJob } from "../job-progress.js";
import { RequestState } from "../request.js";
import { Stays } from "./stays.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @import { Kept } from "./kinds.js" */
/** @import { Job } from "../job-progress.js" */

/** @param {string} job */
const kept = (job) => `souvenir-erasure-${job}`;

/**
 * Keep for this tab what an erasure named, and its numbers when it is finished.
 * @param {string} job
 * @param {Kept} known
 */
export function keepChosen(job, known) {
  sessionStorage.setItem(kept(job), JSON.stringify(known));
}

/** @param {string} job @returns {Kept | null} */
const keptOf = (job) => JSON.parse(sessionStorage.getItem(kept(job)) ?? "null");

/**
 * An erasure: its progress, and then its receipt.
 * @param {{ id: string }} props
 */
export function Erasure({ id }) {
  const { answer, error, slow } = useJob(id);
  const known = keptOf(id);
  const job = answer ?? known?.job;
  useEffect(() => {
    if (known && answer?.finished_at && answer.result) keepChosen(id, { ...known, job: answer });
  }, [answer?.finished_at]);
  const gone = error instanceof ApiError && error.status === 404;
  const state = html`<${RequestState} error=${job && gone ? null : error} slow=${slow && !job} />`;
  if (!job)
    return html`${state}${gone && html`<p>A restore of a backup made before an erasure removes its record. What was erased stays erased, and the <a href=${address("operations", { show: "audit", action: "erase" })}>audit log</a> keeps the event.</p>`}
      <p><a href=${address("forget")}>Forget something else</a></p>`;
  if (!job.finished_at)
    return html`<section aria-label="Progress"><h2>Forgetting</h2>${state}<p><${JobProgress} job=${job} /></p>
      <p class="faint">The chosen data can no longer be found. You can leave: the erasure goes on, and this address shows its receipt.</p></section>`;
  if (!job.result)
    return html`<section aria-label="Progress"><h2>${job.status === "cancelled" ? "Cancelled" : "Failed"}</h2>${state}
      ${job.error && html`<p class="error" role="alert" dir="auto">${job.error}</p>`}
      <p>The chosen data is removed all the same, in the background. Backups may still contain it: forget it again to clear them.</p>
      <p><a href=${againAddress(known)}>Forget it again</a></p></section>`;
  return html`${answer === null && gone && html`<p class="warning">The service no longer has this erasure in its records; this tab kept the receipt.</p>`}
    <${Receipt} job=${job} receipt=${/** @type {Schemas["EraseResponse"]} */ (/** @type {unknown} */ (job.result))} known=${known} />`;
}

/** Where the same can be chosen again, if this tab knows what it was. @param {Kept | null} known */
function againAddress(known) {
  if (!known) return address("forget");
  const { kind, value, selector } = known;
  return address("forget", { kind, value, memories: selector.memory_ids?.join(",") ?? null, messages: selector.message_ids?.join(",") ?? null });
}

/** @param {{ job: Job, receipt: Schemas["EraseResponse"], known: Kept | null }} props */
function Receipt({ job, receipt, known }) {
  const removed = Object.entries(receipt.removed).filter(([, count]) => count > 0);
  const { kind = "", value = "", question, stays, selector = { agent_name: job.namespace } } = known ?? {};
  const { memory_ids: memories = [], message_ids: messages = [] } = selector;
  const ids = [...(memories ?? []), ...(messages ?? [])];
  const text = () =>
    JSON.stringify(
      {
        receipt: "erasure",
        service: location.origin,
        job_id: job.id,
        namespace: job.namespace,
        actor: job.actor,
        requested_at: job.created_at,
        finished_at: job.finished_at,
        chosen: selector,
        ...(question ? { question } : {}),
        ...(stays ? { not_learned_from_it: stays } : {}),
        result: receipt,
      },
      null,
      2,
    );
  return html`<section class="receipt" aria-label="Receipt" role="status">
    <h2>Forgotten</h2>
    <table class="figures"><tbody>
      <tr><th scope="row">What</th><td>${KINDS[kind]?.label ?? "A selection"}${value && html`: <bdi>${value}</bdi>`}${question && html`: <bdi>${question}</bdi>`}</td></tr>
      <tr><th scope="row">In the namespace</th><td><bdi>${job.namespace}</bdi></td></tr>
      <tr><th scope="row">By</th><td><bdi>${job.actor}</bdi></td></tr>
      <tr><th scope="row">Requested</th><td><${Exactly} at=${job.created_at} /></td></tr>
      <tr><th scope="row">Finished</th><td><${Exactly} at=${/** @type {string} */ (job.finished_at)} /></td></tr>
      <tr><th scope="row">Erasure</th><td><code>${job.id}</code></td></tr>
    </tbody></table>
    <h3>Removed</h3>
    ${
      removed.length
        ? html`<table class="figures"><tbody>${removed.map(
            ([name, count]) => html`<tr key=${name}><th scope="row">${name.replaceAll("_", " ")}</th><td class="number">${count.toLocaleString("en")}</td></tr>`,
          )}</tbody></table>`
        : html`<p>Nothing was stored any more.</p>`
    }
    ${stays && html`<${Stays} stays=${stays} name=${kind === "user" ? value : null} />`}
    ${ids.length > 0 && html`<details><summary>Ids (${ids.length.toLocaleString("en")})</summary><p class="ids">${ids.join(", ")}</p></details>`}
    <p>${receipt.files_cleared ? "The database files no longer contain it." : "A long read still needs the old pages; they are cleared as soon as it ends."}</p>
    ${receipt.backups_rewritten.length > 0 && html`<p>Backups rewritten without it: <bdi>${receipt.backups_rewritten.join(", ")}</bdi>.</p>`}
    ${receipt.backups_dropped.length > 0 && html`<p>Backups deleted, since they could not be rewritten: <bdi>${receipt.backups_dropped.join(", ")}</bdi>.</p>`}
    ${receipt.backups_holding.length > 0 && html`<p class="warning">These files still contain erased data: <bdi>${receipt.backups_holding.join(", ")}</bdi>. Forget it with the backups to clear them.</p>`}
    <div class="row-actions no-print">
      <button type="button" onClick=${() => download(`erasure-${job.id}.json`, text())}>Download the receipt</button>
      <${Copy} label="Copy as JSON" text=${text} />
      <button type="button" onClick=${() => print()}>Print</button>
      <button type="button" onClick=${() => go("forget")}>Forget something else</button>
    </div>
    <p class="faint no-print">Download it to keep it. The service keeps these numbers with the job, which a restore of an older backup removes; the audit log keeps the event. Only this tab knows the names and ids that were chosen.</p>
  </section>`;
}

/** A time to the second, as a receipt needs it. @param {{ at: string }} props */
const Exactly = ({ at }) => html`<time datetime=${at}>${at.slice(0, 19).replace("T", " ")} UTC</time> <span class="no-print">(<${Time} at=${at} />)</span>`;

/**
 * @param {string} name
 * @param {string} text
 */
function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
