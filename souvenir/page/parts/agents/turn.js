import { call } from "../../api.js";
import { role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { Confirm } from "../confirm.js";
import { html } from "../html.js";
import { notify } from "../notice.js";
import { StoredText, Time } from "../text.js";
import { TurnEditor } from "./turn-editor.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["MessageRecord"]} Message */

/**
 * A message of a conversation.
 * @param {{
 *   agent: string, message: Message, href: string, place?: { current: HTMLElement | null },
 *   onChanged: (changed: Message) => void, onDeleted: (id: string) => void,
 * }} props `place` is set for the turn in the address.
 */
export function Turn({ agent, message, href, place, onChanged, onDeleted }) {
  const [editing, setEditing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const path = `messages/${encodeURIComponent(agent)}/${encodeURIComponent(message.id)}`;
  const remove = async () => {
    await call("DELETE", path);
    onDeleted(message.id);
    notify("The message is deleted.");
  };
  const who = message.name ?? message.role;
  return html`<article ref=${place} class=${`turn ${message.role} ${place ? "wanted" : ""}`} aria-current=${place ? "true" : undefined}>
    <div class="turn-head"><strong><bdi>${who}</bdi></strong>${message.name && html` <span class="faint">${message.role}</span>`}
      <a class="faint" href=${href} title="Link to this turn"><${Time} at=${message.created_at} /></a>${message.edited_at && html` <span class="faint">edited <${Time} at=${message.edited_at} /></span>`}
      ${
        role.value !== "read-only" &&
        !editing &&
        html`<span class="turn-actions"><button type="button" onClick=${() => setEditing(true)}>Edit</button><button type="button" class="danger" onClick=${() => setDeleting(true)}>Delete …</button></span>`
      }</div>
    ${editing ? html`<${TurnEditor} path=${path} message=${message} onChanged=${onChanged} onClose=${() => setEditing(false)} />` : html`<${StoredText} text=${message.content} />`}
    ${message.metadata && Object.keys(message.metadata).length > 0 && html`<${Metadata} metadata=${message.metadata} />`}
    ${
      deleting &&
      html`<${Confirm} label="Delete the message" word="delete" action="Delete" onConfirm=${remove} onClose=${() => setDeleting(false)}>
        <${StoredText} text=${message.content.slice(0, 500)} /><p>Memories that were learned from it stay. This cannot be undone.</p>
      <//>`
    }
  </article>`;
}

/** @param {{ metadata: Record<string, unknown> }} props */
function Metadata({ metadata }) {
  const { tool_calls: calls, ...others } = metadata;
  const tools = Array.isArray(calls) ? calls : [];
  const rest = Array.isArray(calls) ? others : metadata;
  return html`${tools.map((tool, place) => html`<details key=${place} class="tool"><summary>Tool call <code>${toolName(tool)}</code></summary><pre tabindex="0" dir="auto">${readable(tool)}</pre></details>`)}
    ${
      Object.keys(rest).length > 0 &&
      html`<details class="tool"><summary>Metadata: ${Object.keys(rest).join(", ")}</summary>
        <dl>${Object.entries(rest).map(([name, value]) => html`<dt>${name}</dt><dd dir="auto">${typeof value === "object" ? html`<pre tabindex="0">${readable(value)}</pre>` : String(value)}</dd>`)}</dl></details>`
    }`;
}

/** The name of a tool call, as OpenAI, Anthropic and others write it. @param {any} tool */
const toolName = (tool) => String(tool?.name ?? tool?.function?.name ?? tool?.tool ?? "");

/**
 * JSON with line breaks; arguments that are JSON in a text are read.
 * @param {unknown} value
 */
function readable(value) {
  const opened = (/** @type {string} */ _, /** @type {unknown} */ each) => {
    if (typeof each !== "string" || !/^\s*[[{]/.test(each)) return each;
    try {
      return JSON.parse(each);
    } catch {
      return each;
    }
  };
  return JSON.stringify(value, opened, 2);
}
