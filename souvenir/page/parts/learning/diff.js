import { call } from "../../api.js";
import { address } from "../../state.js";
import { html } from "../html.js";
import { textOf, Verdict } from "./action.js";
import { RequestState, useRequest } from "../request.js";
import { StoredText } from "../text.js";
import { WordDiff } from "../word-diff.js";

/** @import { Schemas } from "../../api.js" */
/** @import { Action } from "./action.js" */

/** The findings of two readings of one conversation, side by side. @param {{ first: string, second: string }} props */
export function Difference({ first, second }) {
  const asked = useRequest((signal) => call("GET", `memory/extract/${encodeURIComponent(first)}/diff?other=${encodeURIComponent(second)}`, { signal }), [first, second]);
  /** @type {Schemas["DiffResponse"] | null} */
  const answer = asked.answer;
  return html`<p><a href=${address("learning", { job: first })}>Back to its findings</a> · compared with <a href=${address("learning", { job: second })}>the other reading</a></p>
    <${RequestState} ...${asked} />
    ${
      answer &&
      html`<${Pairs} label="Decided otherwise" pairs=${answer.decided_otherwise} />
      <${Single} label="Only here" actions=${answer.only_first} />
      <${Single} label="Only in the other reading" actions=${answer.only_second} />
      <${Pairs} label="Agreed" pairs=${answer.agreed} />
      ${!answer.agreed.length && !answer.decided_otherwise.length && !answer.only_first.length && !answer.only_second.length && html`<p>Neither found anything.</p>`}`
    }`;
}

/** @param {{ label: string, pairs: Schemas["FactPair"][] }} props */
function Pairs({ label, pairs }) {
  if (!pairs.length) return null;
  return html`<h3>${label} (${pairs.length})</h3>
    <ul class="proposals">${pairs.map(({ first, second }, place) => {
      const [left, right] = /** @type {Action[]} */ ([first, second]);
      return html`<li key=${place} class="proposal"><div><p><${Verdict} action=${left} would=${true} /></p><${StoredText} text=${textOf(left)} /></div>
        <div><p><${Verdict} action=${right} would=${true} /></p><${WordDiff} before=${textOf(left)} after=${textOf(right)} /></div></li>`;
    })}</ul>`;
}

/** @param {{ label: string, actions: Schemas["DiffResponse"]["only_first"] }} props */
function Single({ label, actions }) {
  if (!actions.length) return null;
  return html`<h3>${label} (${actions.length})</h3>
    <ul class="proposals">${/** @type {Action[]} */ (actions).map(
      (action) => html`<li key=${action.ordinal}><p><${Verdict} action=${action} would=${true} /></p><${StoredText} text=${textOf(action)} /></li>`,
    )}</ul>`;
}
