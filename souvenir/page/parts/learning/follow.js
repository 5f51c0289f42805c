// What can be done with a finished extraction: approve, undo, rerun and compare.
import { call } from "../../api.js";
import { address, go, role, route } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { changes } from "../changes.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { useLastExtractionEvent } from "./extractions.js";
import { useModel } from "./model.js";
import { notify } from "../notice.js";
import { Problem } from "../problem.js";
import { useRequest } from "../request.js";
import { MemoryLink, Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const COMPARED = 200;

/** The context of an extraction that applies chosen proposals; it has no conversation of its own. */
export const COMMIT = "commit";

/** @param {string} id */
export async function undoExtraction(id) {
  const undone = await call("POST", `memory/extract/${id}/undo`);
  changes.value += 1;
  return undone;
}

/** @param {{ job: Schemas["ExtractJob"] }} props */
export function Follow({ job }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  /** @param {() => Promise<unknown>} act */
  const act = async (act) => {
    setBusy(true);
    setError(null);
    try {
      await act();
      changes.value += 1;
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  const undo = () =>
    act(async () => {
      const undone = await undoExtraction(job.job_id);
      notify(`Undone: ${counted(undone.removed.length, "memory", "memories")} removed, ${undone.restored.length} restored.`);
    });
  const approve = () => act(() => call("POST", `memory/extract/${job.job_id}/approve`));
  const applied = job.status === "completed" && !job.dry_run && !job.approval && !job.undone && !job.model_failed;
  const writes = role.value !== "read-only";
  const removing = job.result?.removing?.length ?? 0;
  return html`${
    writes &&
    job.approval &&
    html`<div class="warning"><p>Nothing was changed yet: it would remove ${counted(removing, "memory", "memories")}, more than an extraction may without approval. Approve it whole, commit single proposals, or leave it.</p>
      <p><button type="button" disabled=${busy} onClick=${approve}>Approve the whole extraction</button></p></div>`
  }
    ${writes && applied && html`<p><button type="button" disabled=${busy} onClick=${undo}>Undo all of it</button></p>`}
    <${Blocked} error=${error} />
    ${job.context !== COMMIT && html`${writes && html`<${Rerun} job=${job} />`}<${Compare} job=${job} />`}`;
}

/** A problem whose sentence names memories, with links to them. @param {{ error: unknown }} props */
function Blocked({ error }) {
  const ids = error instanceof Error ? [...new Set([...error.message.matchAll(/memory (\d+)/g)].map(([, id]) => Number(id)))] : [];
  return html`<${Problem} error=${error} />
    ${ids.length > 0 && html`<p>Changed since: ${ids.map((id, place) => html`${place ? ", " : ""}<${MemoryLink} id=${id} />`)}</p>`}`;
}

/** @param {{ job: Schemas["ExtractJob"] }} props */
function Rerun({ job }) {
  const [model, setModel] = useState("");
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const { status } = useModel();
  /** @param {Event} event */
  const rerun = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const accepted = await call("POST", `memory/extract/${job.job_id}/rerun`, { body: model.trim() ? { model: model.trim() } : {} });
      go("learning", { job: accepted.job_id });
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  return html`<h3>Read the conversation again</h3>
    <p class="faint">A rerun only proposes: nothing is changed until you commit.</p>
    <form class="fields" onSubmit=${rerun}>
      ${status?.enabled && html`<label>Model <input autocomplete="off" placeholder=${status.model ?? ""} value=${model} onInput=${(/** @type {Event} */ event) => setModel(/** @type {HTMLInputElement} */ (event.target).value)} /></label>`}
      <button type="button" disabled=${busy} onClick=${rerun}>Rerun</button>
    </form>
    <${Problem} error=${error} />`;
}

/** Other extractions of the same conversation, to compare with. @param {{ job: Schemas["ExtractJob"] }} props */
function Compare({ job }) {
  const first = job.rerun_of ?? job.job_id;
  const asked = useRequest((signal) => call("GET", `memory/extract?status=completed&limit=${COMPARED}`, { signal }), [useLastExtractionEvent()]);
  /** @type {Schemas["ListedExtraction"][]} */
  const listed = asked.answer?.extractions ?? [];
  const others = listed.filter((each) => each.job_id !== job.job_id && (each.job_id === first || each.rerun_of === first));
  if (!others.length) return null;
  const other = route.value.query.get("other");
  return html`<h3>Compare with another reading</h3>
    <ul>${others.map(
      (each) => html`<li key=${each.job_id}><a href=${address("learning", { job: job.job_id, other: each.job_id })} aria-current=${each.job_id === other ? "true" : undefined}>${each.rerun_of ? "Rerun" : "First reading"}${each.model && html` by <bdi>${each.model}</bdi>`}</a> <span class="faint">· <${Time} at=${each.created_at} /></span></li>`,
    )}</ul>`;
}
