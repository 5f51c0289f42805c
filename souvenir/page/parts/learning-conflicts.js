import { call } from "../api.js";
import { address, role } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";
import { notify } from "./notice.js";
import { RequestState, useRequest } from "./request.js";
import { StoredText, Time } from "./text.js";

/** @import { Schemas } from "../api.js" */
/** @typedef {Schemas["ConflictRecord"]} Conflict */

const LISTED = 20;

/** Memories that contradict each other, for a person to decide. */
export function Conflicts() {
  const asked = useRequest((signal) => call("GET", `memory/conflicts?limit=${LISTED}`, { signal }), []);
  const [error, setError] = useState("");
  /** @type {Schemas["ConflictList"] | null} */
  const answer = asked.answer;
  if (!answer?.total) return html`<${RequestState} ...${asked} />`;
  /**
   * Archive the memory that does not hold, which can be undone.
   * @param {number} id
   */
  const archive = async (id) => {
    try {
      await call("PATCH", `memory/${id}`, { body: { archived: true } });
      setError("");
      notify(`Memory ${id} is archived.`, async () => {
        await call("PATCH", `memory/${id}`, { body: { archived: false } });
        asked.again();
      });
    } catch (failed) {
      setError(/** @type {Error} */ (failed).message);
    }
    asked.again();
  };
  return html`<section aria-label="Conflicts">
    <h2>${answer.total.toLocaleString("en")} ${answer.total === 1 ? "conflict waits" : "conflicts wait"} for a decision</h2>
    <${RequestState} error=${error || asked.error} slow=${false} />
    ${answer.conflicts.map(
      (each) => html`<div key=${each.id} class="contradiction">${[each, each.conflicting_memory].map(
        (one) => html`<div key=${one.id}><a class="faint" href=${address("memories", { memory: one.id })}>Memory ${one.id}</a> <span class="faint">· <bdi>${one.source}</bdi> · <${Time} at=${one.created_at} /></span>
          <${StoredText} text=${one.text} />
          ${role.value !== "read-only" && html`<p><button type="button" aria-label=${`Memory ${one.id} does not hold: archive it`} onClick=${() => archive(one.id)}>Does not hold</button></p>`}</div>`,
      )}</div>`,
    )}
  </section>`;
}
