import { call } from "../../api.js";
import { address, namespace } from "../../state.js";
import { useEffect, useState } from "../../vendor/preact-hooks.js";
import { counted } from "../figures.js";
import { KINDS } from "./kinds.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {{ value: string, text?: string | null, more: unknown }} Offer What can be picked: its name or id, a title, and what tells it from others. */

const AT_ONCE = 100;

/**
 * A field for a name or id, and below it what there is to pick from.
 * @param {{ kind: string, value: string, onChoose: (value: string) => void }} props
 */
export function Pick({ kind, value, onChoose }) {
  const [draft, setDraft] = useState(value);
  const [shown, setShown] = useState(AT_ONCE);
  useEffect(() => setDraft(value), [value]);
  const listing = LISTINGS[kind];
  const asked = useRequest(listing && !value ? (signal) => listing(encodeURIComponent(namespace()), shown, signal) : null, [kind, shown, !value]);
  /** @type {{ offers: Offer[], total: number } | null} */
  const answer = asked.answer;
  const typed = draft.trim().toLowerCase();
  const fitting = (answer?.offers ?? []).filter((each) => `${each.value} ${each.text ?? ""}`.toLowerCase().includes(typed));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    onChoose(draft.trim());
  };
  return html`<form class="fields" onSubmit=${submit}>
      <label>${KINDS[kind].asks} <input dir="auto" autocomplete="off" required inputmode=${kind === "memory_id" ? "numeric" : undefined}
        pattern=${kind === "memory_id" ? "[0-9]+" : undefined} value=${draft} onInput=${(/** @type {any} */ event) => setDraft(event.target.value)} /></label>
      <button>Show what will go</button>
    </form>
    ${!value && html`<${RequestState} ...${asked} />`}
    ${!value && answer && !answer.total && html`<p>There is none in <bdi>${namespace()}</bdi>.</p>`}
    ${
      !value &&
      fitting.length > 0 &&
      html`<ul class="offers" aria-label="Pick one">${fitting.map(
        (each) => html`<li key=${each.value}><a href=${address("forget", { kind, value: each.value })}><bdi>${each.text || each.value}</bdi></a> <span class="faint">${each.more}</span></li>`,
      )}</ul>`
    }
    ${!value && answer && answer.total > shown && shown < 1000 && html`<p><button type="button" onClick=${() => setShown(1000)}>Show more of ${answer.total.toLocaleString("en")}</button></p>`}`;
}

/**
 * What there is of each kind. A namespace that is no agent has no users, sessions and blocks: the service answers 404.
 * @type {Record<string, ((agent: string, limit: number, signal: AbortSignal) => Promise<{ offers: Offer[], total: number }>) | undefined>}
 */
const LISTINGS = {
  source: async (_, limit, signal) => {
    /** @type {Schemas["FoldersResponse"]} */
    const { folders } = await call("GET", "folders", { signal });
    // Sources that begin with a slash have no folder.
    const named = folders.filter(({ name }) => !name.startsWith("("));
    return { offers: named.slice(0, limit).map(({ name, count }) => ({ value: name, more: counted(count, "memory", "memories") })), total: named.length };
  },
  user: async (agent, limit, signal) => {
    /** @type {Partial<Schemas["UserPage"]>} */
    const { users = [], total = 0 } = await call("GET", `agents/${agent}/users?limit=${limit}`, { signal, expected: 404 });
    return { offers: users.map(({ name, messages }) => ({ value: name, more: counted(messages, "message", "messages") })), total };
  },
  session_id: async (agent, limit, signal) => {
    /** @type {Partial<Schemas["SessionPage"]>} */
    const { sessions = [], total = 0 } = await call("GET", `sessions/${agent}?limit=${limit}`, { signal, expected: 404 });
    const offers = sessions.map(({ session_id: value, title: text, user, messages, last_message_at: last, started_at: start }) => ({
      value,
      text,
      more: html`${counted(messages, "message", "messages")}${user && html` with <bdi>${user}</bdi>`} · <${Time} at=${last ?? start} />`,
    }));
    return { offers, total };
  },
  block: async (agent, limit, signal) => {
    /** @type {Schemas["MemoryBlock"][] | { detail: string }} */
    const answer = await call("GET", `memory-blocks/${agent}`, { signal, expected: 404 });
    const blocks = Array.isArray(answer) ? answer : [];
    return { offers: blocks.slice(0, limit).map(({ label: value, version }) => ({ value, more: `version ${version}` })), total: blocks.length };
  },
};
