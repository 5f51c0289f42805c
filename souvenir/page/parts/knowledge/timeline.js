import { call } from "../../api.js";
import { address, namespace } from "../../state.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { StoredText, Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */

const MONTH = new Intl.DateTimeFormat("en", { month: "long", year: "numeric", timeZone: "UTC" });

/**
 * The months in which a concept was mentioned, newest first, with its neighbours and the latest texts.
 * @param {{ path: string, concept: Schemas["ConceptDetailsRecord"] }} props
 */
export function Timeline({ path, concept }) {
  const asked = useRequest((signal) => call("GET", `${path}/history`, { signal }), [path, concept.mentions, concept.aliases.join()]);
  /** @type {Schemas["ConceptHistory"] | null} */
  const answer = asked.answer;
  if (!answer) return html`<${RequestState} ...${asked} />`;
  const texts = textsOf(concept);
  const figuresOf = new Map(answer.months.map((each) => [each.month, each]));
  const months = [...new Set([...figuresOf.keys(), ...texts.map(({ at }) => at.slice(0, 7))])].sort().reverse();
  const hidden = concept.mentions - texts.length;
  const most = Math.max(1, ...answer.months.map(({ owners }) => owners));
  return html`<h2>Timeline</h2><${RequestState} ...${asked} />
    ${hidden > 0 && html`<p class="faint">The latest ${texts.length.toLocaleString("en")} of ${concept.mentions.toLocaleString("en")} texts are shown; each month has its figures.</p>`}
    ${months.map((month) => {
    const figures = figuresOf.get(month);
    return html`<section key=${month} class="month" aria-label=${MONTH.format(new Date(`${month}-01`))}>
      <h3>${MONTH.format(new Date(`${month}-01`))}</h3>
      ${
        figures &&
        html`<p class="faint"><meter min="0" max=${most} value=${figures.owners} aria-hidden="true"></meter> ${counted(figures.owners, "text", "texts")}${
          figures.neighbours.length > 0 &&
          html` · with ${figures.neighbours.map((each, place) => html`${place > 0 && ", "}<a href=${address("knowledge", { concept: each.concept_id })}><bdi>${each.name}</bdi></a>`)}`
        }</p>`
      }
      ${texts
        .filter(({ at }) => at.startsWith(month))
        .map(
          ({ key, at, name, href, text }) => html`<div key=${key}><a class="faint" href=${href}>${name}</a> <span class="faint">· <${Time} at=${at} /></span>
            <${StoredText} text=${text} words=${[concept.name, ...concept.aliases]} /></div>`,
        )}
    </section>`;
  })}`;
}

/**
 * The texts that mention a concept, newest first.
 * @param {Schemas["ConceptDetailsRecord"]} concept
 */
function textsOf({ memories, messages }) {
  const ofMemories = memories.map((each) => ({
    key: `memory ${each.id}`,
    at: each.document_at ?? each.created_at,
    name: `Memory ${each.id}`,
    href: address("memories", { memory: each.id }),
    text: each.text,
  }));
  const ofMessages = messages.map((each) => ({
    key: `message ${each.id}`,
    at: each.created_at,
    name: each.role,
    href: address("agents", { in: namespace(), show: "conversations", session: each.session_id, message: each.id }),
    text: each.content,
  }));
  return [...ofMemories, ...ofMessages].sort((one, other) => other.at.localeCompare(one.at));
}
