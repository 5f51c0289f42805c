import { call } from "../api.js";
import { Confirm } from "../parts/confirm.js";
import { counted } from "../parts/figures.js";
import { html } from "../parts/html.js";
import { notify } from "../parts/notice.js";
import { RequestState, useRequest } from "../parts/request.js";
import { StoredText } from "../parts/text.js";
import { go, namespace, role, route } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";

/** @import { Schemas } from "../api.js" */

/**
 * What can be erased: its name in the selector of POST /erase, its label, and what it asks for.
 * @type {Record<string, { label: string, asks: string }>}
 */
const KINDS = {
  source: { label: "Memories of a source", asks: "Source, such as notes/travel" },
  memory_id: { label: "One memory", asks: "Id of the memory" },
  user: { label: "A user", asks: "Name of the user" },
  session_id: { label: "A session", asks: "Id of the session" },
  message_id: { label: "One message", asks: "Id of the message" },
  block: { label: "A memory block", asks: "Label of the block" },
  agent: { label: "Everything of this agent", asks: "" },
};

/** Erase data for good: choose it, see what will go, type its name, and keep the receipt. */
export function Forget() {
  const { query } = route.value;
  const kind = query.get("kind") ?? "source";
  const value = query.get("value") ?? "";
  const [draft, setDraft] = useState(value);
  const [confirming, setConfirming] = useState(false);
  const [backups, setBackups] = useState(true);
  const [receipt, setReceipt] = useState(/** @type {Schemas["EraseResponse"] | null} */ (null));
  const chosen = kind === "agent" || value !== "";
  const found = useRequest(
    chosen && !receipt ? (/** @type {AbortSignal} */ signal) => foundOf(kind, value, signal) : null,
    [kind, value, receipt],
  );
  /** @type {Found | null} */
  const answer = found.answer;
  if (role.value !== "admin")
    return html`<main id="main" tabindex="-1"><h1>Forget</h1><p>Only an admin key can erase data for good. To delete a memory so that a backup can bring it back, open it.</p></main>`;
  const erase = async () => {
    const selector = { agent_name: namespace(), ...(kind === "agent" ? {} : { [kind]: kind === "memory_id" ? Number(value) : value }) };
    const answer = await call("POST", "erase", { body: { selector, confirm: true, backups } });
    if ("job_id" in answer) {
      notify("The erasure goes on as a job.");
      go("operations");
    } else setReceipt(answer);
  };
  /** @param {Record<string, string | null>} change */
  const choose = (change) => {
    setReceipt(null);
    go("forget", { kind, value, ...change });
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    choose({ value: draft.trim() });
  };
  return html`<main id="main" tabindex="-1" class="scroll">
    <h1>Forget in <bdi>${namespace()}</bdi></h1>
    <p>Erased data is removed from the database, its indexes and its history. No restore of a backup brings it back.</p>
    <form class="fields" onSubmit=${submit}>
      <label>What <select value=${kind} onChange=${(/** @type {Event} */ event) => {
        setDraft("");
        choose({ kind: /** @type {HTMLSelectElement} */ (event.target).value, value: null });
      }}>${Object.entries(KINDS).map(([name, { label }]) => html`<option key=${name} value=${name}>${label}</option>`)}</select></label>
      ${
        kind !== "agent" &&
        html`<label>${KINDS[kind]?.asks} <input dir="auto" autocomplete="off" required inputmode=${kind === "memory_id" ? "numeric" : undefined}
            value=${draft} onInput=${(/** @type {InputEvent} */ event) => setDraft(/** @type {HTMLInputElement} */ (event.target).value)} /></label>
          <button>Show what will go</button>`
      }
    </form>
    <${RequestState} ...${found} />
    ${
      answer &&
      chosen &&
      !receipt &&
      html`<section aria-label="What will go">
        <h2>What will go</h2>
        <ul>${answer.counts.map((line) => html`<li key=${line}>${line}</li>`)}</ul>
        ${answer.text !== undefined && html`<blockquote><${StoredText} text=${answer.text} /></blockquote>`}
        <p class="faint">With it go its facts, tags, links, history, index entries and vectors, and memories that were learned from it.</p>
        <p><label><input type="checkbox" checked=${backups}
          onChange=${(/** @type {Event} */ event) => setBackups(/** @type {HTMLInputElement} */ (event.target).checked)} /> Erase it from the backups too</label></p>
        <p><button type="button" class="danger" disabled=${!answer.any} onClick=${() => setConfirming(true)}>Erase …</button></p>
      </section>`
    }
    ${receipt && html`<${Receipt} receipt=${receipt} />`}
    ${
      confirming &&
      html`<${Confirm} label="Erase for good" word=${kind === "agent" ? namespace() : value} action="Erase for good"
        onConfirm=${erase} onClose=${() => setConfirming(false)}>
        <ul>${answer?.counts.map((line) => html`<li key=${line}>${line}</li>`)}</ul>
        <p>This cannot be undone.</p>
      <//>`
    }
  </main>`;
}

/** @param {{ receipt: Schemas["EraseResponse"] }} props */
function Receipt({ receipt }) {
  const removed = Object.entries(receipt.removed).filter(([, count]) => count > 0);
  return html`<section aria-label="Receipt" role="status">
    <h2>Erased</h2>
    ${
      removed.length
        ? html`<table><tbody>${removed.map(
            ([name, count]) => html`<tr key=${name}><th scope="row">${name.replaceAll("_", " ")}</th><td class="number">${count.toLocaleString("en")}</td></tr>`,
          )}</tbody></table>`
        : html`<p>Nothing was stored any more.</p>`
    }
    <p>${receipt.files_cleared ? "The database files no longer contain it." : "A long read still needs the old pages; they are cleared as soon as it ends."}</p>
    ${receipt.backups_rewritten.length > 0 && html`<p>Backups rewritten without it: ${receipt.backups_rewritten.length}.</p>`}
    ${receipt.backups_dropped.length > 0 && html`<p>Backups deleted, since they could not be rewritten: <bdi>${receipt.backups_dropped.join(", ")}</bdi>.</p>`}
    ${receipt.backups_holding.length > 0 && html`<p class="warning">These files still contain erased data: <bdi>${receipt.backups_holding.join(", ")}</bdi>. Erase with the backups to clear them.</p>`}
  </section>`;
}

/** @typedef {{ any: boolean, counts: string[], text?: string }} Found What a choice stands for: lines with counts, and the text of a single thing. */

/**
 * @param {string} kind
 * @param {string} value
 * @param {AbortSignal} signal
 * @returns {Promise<Found>}
 */
async function foundOf(kind, value, signal) {
  const agent = encodeURIComponent(namespace());
  const name = encodeURIComponent(value);
  const get = (/** @type {string} */ path) => call("GET", path, { signal });
  if (kind === "source") {
    const { count } = await get(`memories/count?source=${name}&source_boundary=true&include_archived=true`);
    return { any: count > 0, counts: [counted(count, "memory", "memories")] };
  }
  if (kind === "memory_id") return { any: true, counts: ["1 memory"], text: (await get(`memory/${name}`)).text };
  if (kind === "session_id") {
    const { messages } = await get(`sessions/${agent}/${name}`);
    return { any: true, counts: ["1 session", counted(messages, "message", "messages")] };
  }
  if (kind === "message_id") return { any: true, counts: ["1 message"], text: (await get(`messages/${agent}/${name}`)).content };
  if (kind === "block") return { any: true, counts: ["1 block with its history"], text: (await get(`memory-blocks/${agent}/${name}`)).value };
  if (kind === "user") {
    const { users } = /** @type {Schemas["UserPage"]} */ (await get(`agents/${agent}/users?limit=1000`));
    const user = users.find((each) => each.name === value);
    if (!user) return { any: false, counts: ["0 messages: this agent has no such user"] };
    return { any: true, counts: [counted(user.messages, "message", "messages"), "the sessions that only this user took part in"] };
  }
  const stats = await get(`agents/${agent}/stats`);
  return {
    any: true,
    counts: [
      counted(stats.memories, "memory", "memories"),
      counted(stats.messages, "message", "messages"),
      counted(stats.sessions, "session", "sessions"),
      counted(stats.users, "user", "users"),
      counted(stats.blocks, "block", "blocks"),
    ],
  };
}
