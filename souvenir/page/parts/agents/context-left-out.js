import { address } from "../../state.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { percent } from "../score.js";

/** @import { Schemas } from "../../api.js" */

export const LEFT_OUT = "left-out";

const REASONS = { budget: "does not fit the budget", relevance: "hardly about the question" };

/**
 * What was found and is not in the text, with the reason.
 * @param {{ agent: string, dropped: Schemas["DroppedCounts"] }} props
 */
export function LeftOut({ agent, dropped }) {
  const results = dropped.results ?? [];
  const count = dropped.messages + dropped.memories;
  const listed = results.filter(({ reason }) => reason === "budget").length;
  return html`<section class="left-out faint" id=${LEFT_OUT} tabindex="-1" aria-label="Left out"><h2>Left out</h2>
    ${count === 0 && results.length === 0 && html`<p>Nothing had to be left out.</p>`}
    ${count === 0 && results.length > 0 && html`<p>Not close enough to the question:</p>`}
    ${
      count > 0 &&
      html`<p>The budget was used up before ${counted(dropped.messages, "message", "messages")} and ${counted(dropped.memories, "memory", "memories")}${count > listed ? `, of which the best ${listed} are listed` : ""}.</p>`
    }
    <ul>${results.map(
      (each) => html`<li key=${each.message_id ?? each.memory_id}><a href=${
        each.kind === "memory"
          ? address("memories", { in: agent, memory: each.memory_id })
          : address("agents", { in: agent, show: "conversations", session: each.session_id, message: each.message_id })
      }>${each.kind}</a> <bdi>${each.text}</bdi> <span class="reason">${percent(each.score)} · ${REASONS[each.reason]}</span></li>`,
    )}</ul></section>`;
}
