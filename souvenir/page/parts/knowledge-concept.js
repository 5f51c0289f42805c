import { call } from "../api.js";
import { address, go, role } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { Confirm } from "./confirm.js";
import { counted } from "./figures.js";
import { html } from "./html.js";
import { Timeline } from "./knowledge-timeline.js";
import { notify } from "./notice.js";
import { RequestState, useRequest } from "./request.js";
import { StoredText } from "./text.js";

/** @import { Schemas } from "../api.js" */

const RELATED = 30;

/** @param {string} text */
const names = (text) => text.split(",").map((name) => name.trim()).filter(Boolean);

/**
 * A concept: its description, related concepts, and the texts that mention it.
 * @param {{ agent: string, id: string }} props `agent` is encoded for a path.
 */
export function Concept({ agent, id }) {
  const path = `agents/${agent}/concepts/${encodeURIComponent(id)}`;
  const asked = useRequest(
    (signal) => Promise.all([call("GET", path, { signal }), call("GET", `${path}/related?limit=${RELATED}`, { signal })]),
    [path],
  );
  const [editing, setEditing] = useState(false);
  const [forgetting, setForgetting] = useState(false);
  const [error, setError] = useState("");
  /** @type {[Schemas["ConceptDetailsRecord"], Schemas["RelatedConcepts"]] | null} */
  const answer = asked.answer;
  if (!answer) return html`<${RequestState} ...${asked} />`;
  const [concept, { related }] = answer;
  /** @param {SubmitEvent} event */
  const save = async (event) => {
    event.preventDefault();
    const fields = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const stated = concept.described_by === "caller" ? (concept.description ?? "") : "";
    /** @type {Record<string, string>} */
    const before = { name: concept.name, kind: concept.kind, description: stated, aliases: concept.aliases.join(", ") };
    const changed = Object.keys(before).filter((name) => fields.get(name) !== before[name]);
    /** @param {(name: string) => string} of */
    const body = (of) => Object.fromEntries(changed.map((name) => [name, name === "aliases" ? names(of(name)) : of(name)]));
    const change = body((name) => String(fields.get(name)));
    const former = body((name) => before[name]);
    try {
      await call("PATCH", path, { body: change });
      setEditing(false);
      setError("");
      notify(`The concept ${fields.get("name")} is saved.`, async () => {
        await call("PATCH", path, { body: former });
        asked.again();
      });
    } catch (failed) {
      setError(/** @type {Error} */ (failed).message);
    }
    asked.again();
  };
  const forget = async () => {
    await call("DELETE", path);
    notify(`The concept ${concept.name} is removed.`);
    go("knowledge");
  };
  return html`<section aria-label="Concept">
    <h2><bdi>${concept.name}</bdi></h2>
    <p class="faint">${concept.kind} · ${counted(concept.mentions, "mention", "mentions")}${concept.aliases.length ? html` · also <bdi>${concept.aliases.join(", ")}</bdi>` : ""}</p>
    <${RequestState} error=${error || asked.error} slow=${false} />
    ${concept.description && html`<${StoredText} text=${concept.description} />`}
    ${concept.description && concept.described_by === "texts" && html`<p class="faint">A sentence from the texts.</p>`}
    ${
      editing
        ? html`<form class="fields" onSubmit=${save}>
            <label>Name <input name="name" required dir="auto" autocomplete="off" defaultValue=${concept.name} /></label>
            <label>Kind <input name="kind" required autocomplete="off" defaultValue=${concept.kind} /></label>
            <label>Description <input name="description" size="40" dir="auto" autocomplete="off" defaultValue=${concept.described_by === "caller" ? concept.description : ""} /></label>
            <label>Other names, with commas between; concepts of these names are merged into this one
              <input name="aliases" dir="auto" autocomplete="off" defaultValue=${concept.aliases.join(", ")} /></label>
            <button>Save</button><button type="button" onClick=${() => setEditing(false)}>Cancel</button>
          </form>`
        : role.value !== "read-only" &&
          html`<p><button type="button" onClick=${() => setEditing(true)}>Edit</button> <button type="button" class="danger" onClick=${() => setForgetting(true)}>Remove …</button></p>`
    }
    <p><a href=${address("knowledge", { show: "graph", around: id, node: id })}>Show in the graph</a></p>
    ${
      related.length > 0 &&
      html`<h2>Related</h2><div class="wide-table" tabindex="0"><table><thead><tr><th>Concept</th><th>Relation</th><th>Mentioned together</th></tr></thead>
        <tbody>${related.map(
          (each) => html`<tr key=${each.concept.id}><td><a href=${address("knowledge", { concept: each.concept.id })}><bdi>${each.concept.name}</bdi></a></td>
          <td>${each.relationship_type.replaceAll("_", " ")}${each.path.length ? html` <span class="faint">by <bdi>${each.path.join(", ")}</bdi></span>` : ""}</td><td>${each.together.toLocaleString("en")}</td></tr>`,
        )}</tbody></table></div>`
    }
    <${Timeline} path=${path} concept=${concept} />
    ${
      forgetting &&
      html`<${Confirm} label="Remove the concept" word=${concept.name} action="Remove" onConfirm=${forget} onClose=${() => setForgetting(false)}>
        <p>The texts that mention it stay. Its name, description and relations go.</p>
      <//>`
    }
  </section>`;
}
