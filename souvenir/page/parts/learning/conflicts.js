import { call } from "../../api.js";
import { address, role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { changes, updateMemory } from "../changes.js";
import { html } from "../html.js";
import { arrived } from "../live.js";
import { notify } from "../notice.js";
import { RequestState, useRequest } from "../request.js";
import { StoredText, Time } from "../text.js";
import { wordDiff } from "../word-diff.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["ConflictRecord"]} Conflict */

const LISTED = 20;

/** @type {Record<string, string>} */
const REVIEWS = {
  cross_source: "They are of different sources, and both may be right there.",
  undated: "It is not known which of them is newer.",
  pinned_loser: "The older one is pinned.",
  less_trusted: "The newer one comes from a less trusted origin.",
};

/** Memories that contradict each other, for a person to decide. */
export function Conflicts() {
  const last = arrived.value.find(({ type }) => type.startsWith("conflict."))?.id ?? 0;
  const asked = useRequest((signal) => call("GET", `memory/conflicts?limit=${LISTED}`, { signal }), [last, changes.value]);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  /** @type {Schemas["ConflictList"] | null} */
  const answer = asked.answer;
  if (!answer?.total) return html`<${RequestState} ...${asked} />`;
  /** @param {() => Promise<unknown>} decide @param {string} text @param {() => Promise<unknown>} back */
  const settle = async (decide, text, back) => {
    try {
      await decide();
      setError(null);
      notify(text, back);
    } catch (failed) {
      setError(failed);
    }
    changes.value += 1;
  };
  /** Archive the other memory. @param {number} kept @param {number} id */
  const keep = (kept, id) => settle(() => updateMemory(id, { archived: true }, { archived: false }), `Memory ${kept} is kept, and memory ${id} archived.`, () => updateMemory(id, { archived: false }, { archived: true }));
  /** @param {Conflict} each */
  const keepBoth = ({ id, conflicts_with: other }) => {
    const path = `memory/${id}/conflict/${other}`;
    const back = async () => {
      await call("PUT", path);
      changes.value += 1;
    };
    return settle(() => call("DELETE", path), "Both memories are kept.", back);
  };
  return html`<section aria-label="Conflicts">
    <h2>${answer.total.toLocaleString("en")} ${answer.total === 1 ? "conflict waits" : "conflicts wait"} for a decision</h2>
    <${RequestState} error=${error || asked.error} slow=${false} />
    ${answer.conflicts.map((each) => html`<${Contradiction} key=${`${each.id}-${each.conflicts_with}`} conflict=${each} onKeep=${keep} onKeepBoth=${() => keepBoth(each)} />`)}
  </section>`;
}

/** @param {{ conflict: Conflict, onKeep: (kept: number, archived: number) => void, onKeepBoth: () => void }} props */
function Contradiction({ conflict, onKeep, onKeepBoth }) {
  const other = conflict.conflicting_memory;
  const writes = role.value !== "read-only";
  const pieces = wordDiff(other.text, conflict.text);
  // Without a word in common, marks would only repeat the texts.
  const shared = pieces.some(({ kind, text }) => kind === "same" && text.trim());
  return html`<div role="group" class="conflicting" aria-label=${`Memory ${other.id} or memory ${conflict.id}`}>
    <div class="contradiction">${[other, conflict].map((one, place) => {
      const rest = place ? other : conflict;
      const hidden = place ? "gone" : "new";
      return html`<div key=${one.id}><a class="faint" href=${address("memories", { memory: one.id })}>Memory ${one.id}</a> <span class="faint">· <bdi>${one.source}</bdi> · <${Time} at=${one.document_at ?? one.created_at} /></span>
        ${
          shared
            ? html`<div class="memory-text diff" dir="auto">${pieces.filter(({ kind }) => kind !== hidden).map(({ kind, text }) => (kind === "same" ? text : html`<mark>${text}</mark>`))}</div>`
            : html`<${StoredText} text=${one.text} />`
        }
        ${writes && html`<p><button type="button" title=${`Archive memory ${rest.id}`} onClick=${() => onKeep(one.id, rest.id)}>Keep memory ${one.id}</button></p>`}</div>`;
    })}</div>
    ${conflict.review_reason && html`<p class="faint">${REVIEWS[conflict.review_reason] ?? ""}</p>`}
    ${writes && html`<p><button type="button" onClick=${onKeepBoth}>Keep both</button></p>`}
  </div>`;
}
