import { call } from "../../api.js";
import { address, go, namespace, role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { ConceptEditor, ConceptMerge } from "./concept-edit.js";
import { Confirm } from "../confirm.js";
import { counted } from "../figures.js";
import { relationName } from "./graph-data.js";
import { html } from "../html.js";
import { notify } from "../notice.js";
import { RequestState, useRequest } from "../request.js";
import { StoredText, Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["ConceptDetailsRecord"]} Details */

const RELATED = 30;
const MENTIONS = 200;

/**
 * A concept: its description, related concepts, and the texts that mention it.
 * @param {{ agent: string, id: string }} props `agent` is encoded for a path.
 */
export function Concept({ agent, id }) {
  const path = `agents/${agent}/concepts/${encodeURIComponent(id)}`;
  const asked = useRequest(
    (signal) => Promise.all([call("GET", `${path}?mentions=${MENTIONS}`, { signal }), call("GET", `${path}/related?limit=${RELATED}`, { signal })]),
    [path],
  );
  const [shown, setShown] = useState(/** @type {"edit" | "merge" | "remove" | null} */ (null));
  /** @type {[Details, Schemas["RelatedConcepts"]] | null} */
  const answer = asked.answer;
  if (!answer) return html`<${RequestState} ...${asked} />`;
  const [concept, { related }] = answer;
  const close = () => setShown(null);
  const parts = { agent, concept, onChanged: asked.again, onClose: close };
  return html`<section aria-label="Concept">
    <h2><bdi>${concept.name}</bdi></h2>
    <p class="faint"><bdi>${concept.kind}</bdi>${concept.role ? html`, <bdi>${concept.role}</bdi>` : ""} · ${counted(concept.mentions, "mention", "mentions")}${concept.first_at && concept.last_at ? html`, first <${Time} at=${concept.first_at} />, last <${Time} at=${concept.last_at} />` : ""}${concept.aliases.length ? html` · also <bdi>${concept.aliases.join(", ")}</bdi>` : ""}</p>
    <${RequestState} error=${asked.error} slow=${false} />
    ${concept.description && html`<${StoredText} text=${concept.description} />`}
    ${concept.description && concept.described_by === "texts" && html`<p class="faint">A sentence from the texts.</p>`}
    ${
      shown === "edit"
        ? html`<${ConceptEditor} ...${parts} />`
        : shown === "merge"
          ? html`<${ConceptMerge} ...${parts} />`
          : role.value !== "read-only" &&
            html`<p class="actions"><button type="button" onClick=${() => setShown("edit")}>Edit</button>
              <button type="button" onClick=${() => setShown("merge")}>Merge another into it</button>
              <button type="button" class="danger" onClick=${() => setShown("remove")}>Remove …</button></p>`
    }
    <p><a href=${address("knowledge", { show: "graph", around: id, node: id })}>Show in the graph</a></p>
    <${Related} related=${related} />
    <${Mentions} concept=${concept} />
    ${shown === "remove" && html`<${Removal} path=${path} concept=${concept} onClose=${close} />`}
  </section>`;
}

/** @param {{ related: Schemas["RelatedConcept"][] }} props */
function Related({ related }) {
  if (!related.length) return null;
  return html`<h2>Related</h2><div class="wide-table" tabindex="0"><table><thead><tr><th>Concept</th><th>Relation</th><th>Texts</th></tr></thead>
    <tbody>${related.map(
      (each) => html`<tr key=${each.concept.id}><td><a href=${address("knowledge", { concept: each.concept.id })}><bdi>${each.concept.name}</bdi></a></td>
      <td><bdi>${relationName(each.relationship_type)}</bdi>${each.path.length ? html` <span class="faint">through <bdi>${each.path.join(", ")}</bdi></span>` : ""}</td><td>${each.together.toLocaleString("en")}</td></tr>`,
    )}</tbody></table></div>`;
}

/** @param {{ concept: Details }} props */
function Mentions({ concept }) {
  const texts = textsOf(concept);
  const hidden = concept.mentions - texts.length;
  return html`<h2>Mentions</h2>
    ${hidden > 0 && html`<p class="faint">The latest ${texts.length.toLocaleString("en")} of ${concept.mentions.toLocaleString("en")} texts are shown.</p>`}
    ${texts.map(
      ({ key, at, name, href, text }) => html`<div key=${key}><a class="faint" href=${href}>${name}</a> <span class="faint">· <${Time} at=${at} /></span>
        <${StoredText} text=${text} words=${[concept.name, ...concept.aliases]} /></div>`,
    )}`;
}

/**
 * The texts that mention a concept, newest first.
 * @param {Details} concept
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

/** @param {{ path: string, concept: Details, onClose: () => void }} props */
function Removal({ path, concept, onClose }) {
  const remove = async () => {
    await call("DELETE", path);
    notify(`The concept ${concept.name} is removed.`);
    go("knowledge", { show: "concepts" });
  };
  return html`<${Confirm} label="Remove the concept" word=${concept.name} action="Remove" onConfirm=${remove} onClose=${onClose}>
    <p>The ${counted(concept.mentions, "text", "texts")} that mention it stay. Its names, description and relations go, and it is not recognised in texts again.</p>
  <//>`;
}
