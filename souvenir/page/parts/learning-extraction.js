import { ApiError, call } from "../api.js";
import { address } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { notify } from "./notice.js";

/** @import { Schemas } from "../api.js" */

const WATCH_MS = 500;

/** Learn from a conversation: paste it, see what would be stored, and store it; an extraction can be undone. */
export function Extraction() {
  const [text, setText] = useState("");
  const [source, setSource] = useState("page");
  const [busy, setBusy] = useState("");
  const [error, setError] = useState("");
  const [planned, setPlanned] = useState(/** @type {Schemas["ExtractResult"] | null} */ (null));
  const [stored, setStored] = useState(/** @type {Schemas["ExtractJob"] | null} */ (null));
  /** @param {boolean} dry */
  const learn = async (dry) => {
    setBusy(dry ? "Reading the conversation …" : "Storing …");
    setError("");
    try {
      const accepted = await call("POST", "memory/extract", { body: { messages: text, source, dry_run: dry } });
      const job = await ended(accepted.job_id);
      if (job.status !== "completed") throw new ApiError(502, job.error ?? `The extraction is ${job.status}.`, null);
      if (job.result?.error) throw new ApiError(502, job.result.error_message ?? job.result.error, null);
      setPlanned(dry ? (job.result ?? null) : null);
      setStored(dry ? null : job);
    } catch (failed) {
      setError(
        failed instanceof ApiError && failed.status === 501
          ? "No language model is configured, so nothing can be extracted here: set EXTRACT_PROVIDER where the service runs, or EXTRACT_FALLBACK_ADD=true to store transcripts without a model."
          : /** @type {Error} */ (failed).message,
      );
    }
    setBusy("");
  };
  const undo = async () => {
    if (!stored) return;
    try {
      const undone = await call("POST", `memory/extract/${stored.job_id}/undo`);
      notify(`Undone: ${undone.removed.length} memories removed, ${undone.restored.length} restored.`);
      setStored(null);
    } catch (failed) {
      setError(/** @type {Error} */ (failed).message);
    }
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    void learn(true);
  };
  return html`<section aria-label="Learn from a conversation">
    <h2>Learn from a conversation</h2>
    <form onSubmit=${submit}>
      <p><label>Conversation, with a speaker before each turn<br />
        <textarea class="conversation" dir="auto" required placeholder="User: I moved to Lisbon." value=${text}
          onInput=${(/** @type {Event} */ event) => setText(/** @type {HTMLTextAreaElement} */ (event.target).value)}></textarea></label></p>
      <p><label>Source <input dir="auto" required autocomplete="off" value=${source} onInput=${(/** @type {Event} */ event) => setSource(/** @type {HTMLInputElement} */ (event.target).value)} /></label></p>
      <p><button disabled=${Boolean(busy)}>Show what would be learned</button></p>
    </form>
    ${busy && html`<p class="faint" role="status">${busy}</p>`}
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${
      planned &&
      html`<div role="status"><h2>Would be learned</h2><${Actions} result=${planned} />
        <p><button type="button" disabled=${Boolean(busy)} onClick=${() => learn(false)}>Learn it</button> <button type="button" onClick=${() => setPlanned(null)}>Discard</button></p></div>`
    }
    ${
      stored?.result &&
      html`<div role="status"><h2>Learned</h2><${Actions} result=${stored.result} />
        <p><button type="button" onClick=${undo}>Undo all of it</button></p></div>`
    }
  </section>`;
}

/** @param {{ result: Schemas["ExtractResult"] }} props */
function Actions({ result }) {
  const actions = /** @type {{ action: string, text?: string, fact?: string | { text: string }, id?: number, new_id?: number, old_text?: string }[]} */ (result.actions);
  if (!actions.length) return html`<p>Nothing worth remembering was found.</p>`;
  return html`<ul>${actions.map((each, place) => {
    const fact = each.text ?? (typeof each.fact === "object" ? each.fact.text : each.fact) ?? "";
    const id = each.new_id ?? each.id;
    return html`<li key=${place}><strong>${each.action.toLowerCase().replaceAll("_", " ")}</strong> <span dir="auto">${fact}</span>
      ${each.old_text && html` instead of <del dir="auto">${each.old_text}</del>`}
      ${id ? html` <a href=${address("memories", { memory: id })}>memory ${id}</a>` : ""}</li>`;
  })}</ul>`;
}

/**
 * The job once it has ended.
 * @param {string} id
 * @returns {Promise<Schemas["ExtractJob"]>}
 */
async function ended(id) {
  for (;;) {
    const job = await call("GET", `memory/extract/${id}`);
    if (job.completed_at) return job;
    await new Promise((done) => setTimeout(done, WATCH_MS));
  }
}
