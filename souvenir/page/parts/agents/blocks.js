import { call } from "../../api.js";
import { role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { Block, Length } from "./block.js";
import { html } from "../html.js";
import { arrived } from "../live.js";
import { Problem } from "../problem.js";
import { RequestState, useRequest } from "../request.js";

/** @import { Schemas } from "../../api.js" */

const DEFAULT_LIMIT = 5000;

/**
 * The memory blocks of an agent, which are in each of its contexts.
 * @param {{ agent: string }} props
 */
export function Blocks({ agent }) {
  const path = `memory-blocks/${encodeURIComponent(agent)}`;
  const last = arrived.value.find(({ type }) => type.startsWith("block."))?.id ?? 0;
  const asked = useRequest((signal) => call("GET", path, { signal }), [path, last]);
  /** @type {Schemas["MemoryBlockList"] | null} */
  const blocks = asked.answer;
  return html`<${RequestState} error=${asked.error} slow=${asked.slow && !blocks} />
    ${blocks && !blocks.length && html`<p>No block yet. A block is a short text that is in every context: who the user is, how the agent speaks.</p>`}
    ${blocks?.map((block) => html`<${Block} key=${block.id} path=${`${path}/${encodeURIComponent(block.label)}`} block=${block} onChanged=${asked.again} />`)}
    ${blocks && role.value !== "read-only" && html`<${NewBlock} agent=${agent} onMade=${asked.again} />`}`;
}

/** @param {{ agent: string, onMade: () => void }} props */
function NewBlock({ agent, onMade }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [value, setValue] = useState("");
  const [limit, setLimit] = useState(DEFAULT_LIMIT);
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const fields = new FormData(form);
    const body = { agent_name: agent, label: fields.get("label"), value, limit, description: fields.get("description") || null, read_only: fields.has("read_only") };
    try {
      await call("POST", "memory-blocks", { body });
      form.reset();
      setValue("");
      setLimit(DEFAULT_LIMIT);
      setError(null);
      onMade();
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<form class="block new-block" aria-label="New block" onSubmit=${submit}>
      <h2>New block</h2>
      <div class="fields"><label>Label of a new block <input name="label" required autocomplete="off" /></label>
        <label>What it is for <input name="description" size="40" dir="auto" autocomplete="off" /></label>
        <label>Limit in characters <input name="limit" type="number" min="1" max="50000" required value=${limit} onInput=${(/** @type {Event} */ event) => setLimit(Number(/** @type {HTMLInputElement} */ (event.target).value))} /></label></div>
      <label>Text <textarea dir="auto" value=${value} onInput=${(/** @type {Event} */ event) => setValue(/** @type {HTMLTextAreaElement} */ (event.target).value)}></textarea></label>
      <${Length} value=${value} limit=${limit} />
      <p><label><input name="read_only" type="checkbox" /> Read-only</label></p>
      <${Problem} error=${error} /><p><button>Add</button></p>
    </form>`;
}
