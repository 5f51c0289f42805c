import { call } from "../../api.js";
import { go, namespace, route } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { changes } from "../changes.js";
import { Confirm } from "../confirm.js";
import { counted } from "../figures.js";
import { keepChosen } from "./receipt.js";
import { Stays } from "./stays.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { StoredText } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @import { Selector } from "./kinds.js" */

/** The receipt follows at once where the erasure takes no longer. */
const WAIT_S = 2;

/** What memories can be learned from. */
const LEARNED_FROM = ["user", "session_id"];

/** @type {[name: keyof Schemas["SelectedCounts"], one: string, many: string][]} */
const COUNTED = [
  ["agents", "agent with its settings", "agents with their settings"],
  ["users", "user", "users"],
  ["sessions", "session", "sessions"],
  ["messages", "message", "messages"],
  ["memories", "memory", "memories"],
  ["facts", "fact", "facts"],
  ["tags", "tag", "tags"],
  ["links", "link between memories", "links between memories"],
  ["blocks", "block", "blocks"],
  ["block_versions", "version of blocks", "versions of blocks"],
];

/**
 * What an erasure would remove, in the numbers that the receipt will have, and the button that asks to confirm it.
 * @param {{ kind: string, value: string, selector: Selector }} props
 */
export function Preview({ kind, value, selector }) {
  const [confirming, setConfirming] = useState(false);
  const [backups, setBackups] = useState(true);
  const body = { selector };
  const asked = useRequest(
    (signal) => Promise.all([call("POST", "erase/preview", { body, signal, expected: 404 }), textOf(kind, value, signal), LEARNED_FROM.includes(kind) ? statsOf(signal) : null]),
    [JSON.stringify(body)],
  );
  if (!asked.answer) return html`<${RequestState} ...${asked} />`;
  /** @type {[Schemas["ErasePreviewResponse"] | { detail: string }, string | null, Partial<Schemas["AgentStatsResponse"]> | null]} */
  const [answer, text, stats] = asked.answer;
  const found = "would_remove" in answer ? answer : null;
  const learned = LEARNED_FROM.includes(kind);
  const left = (/** @type {"memories" | "blocks"} */ name) => Math.max(0, (stats?.[name] ?? 0) - (found?.would_remove[name] ?? 0));
  const stays = found && stats ? { memories: left("memories"), blocks: left("blocks") } : undefined;
  const lines = found
    ? COUNTED.filter(([name]) => found.would_remove[name] > 0).map(
        ([name, one, many]) => `${counted(found.would_remove[name], one, many)}${name === "memories" && learned ? " learned from it" : ""}`,
      )
    : [];
  if (found && found.only_in_backups > 0) lines.push(`${counted(found.only_in_backups, "thing that only backups contain", "things that only backups contain")}`);
  const holding = found?.backups_holding ?? [];
  const size = (selector.memory_ids?.length ?? 0) + (selector.message_ids?.length ?? 0);
  const word = kind === "agent" ? namespace() : kind === "search" ? `forget ${size}` : value;
  const erase = async () => {
    const erasing = { selector, confirm: true, backups: backups && holding.length > 0 };
    const { job_id: job } = await call("POST", `erase?wait_s=${WAIT_S}`, { body: erasing });
    keepChosen(job, { kind, value, selector, question: route.value.query.get("q") ?? undefined, stays });
    changes.value += 1;
    go("forget", { job }, { replace: true });
  };
  return html`<section aria-label="What will go">
    <h2>What will go</h2>
    <${RequestState} ...${asked} />
    ${lines.length > 0 && html`<ul>${lines.map((line) => html`<li key=${line}>${line}</li>`)}</ul>`}
    ${"detail" in answer && html`<p>Nothing is stored under this name, and no backup contains it.</p>`}
    ${stays && html`<${Stays} stays=${stays} name=${kind === "user" ? value : null} />`}
    ${text !== null && html`<blockquote><${StoredText} text=${text} /></blockquote>`}
    ${
      found &&
      html`<p class="faint">With it go its history, index entries and vectors.</p>
      ${
        holding.length > 0
          ? html`<p><label><input type="checkbox" checked=${backups} onChange=${(/** @type {any} */ event) => setBackups(event.target.checked)} />
              Forget it in ${counted(holding.length, "backup that contains it", "backups that contain it")} too</label></p>
            ${!backups && html`<p class="warning">${counted(holding.length, "backup keeps", "backups keep")} it. A restore does not bring it back, but who has the file can read it.</p>`}`
          : html`<p class="faint">No backup contains it.</p>`
      }`
    }
    <p><button type="button" class="danger" disabled=${!lines.length} onClick=${() => setConfirming(true)}>Forget …</button></p>
    ${
      confirming &&
      html`<${Confirm} label="Forget for good" word=${word} action="Forget for good" onConfirm=${erase} onClose=${() => setConfirming(false)}>
        <ul>${lines.map((line) => html`<li key=${line}>${line}</li>`)}</ul>
        <p>${holding.length > 0 && (backups ? `${counted(holding.length, "backup is", "backups are")} rewritten without it. ` : `${counted(holding.length, "backup keeps", "backups keep")} it. `)}This cannot be undone.</p>
      <//>`
    }
  </section>`;
}

/** @param {AbortSignal} signal */
const statsOf = (signal) => call("GET", `agents/${encodeURIComponent(namespace())}/stats`, { signal, expected: 404 });

/**
 * The text of a single thing; null for several, and for one that is not stored.
 * @param {string} kind
 * @param {string} value
 * @param {AbortSignal} signal
 * @returns {Promise<string | null>}
 */
async function textOf(kind, value, signal) {
  const agent = encodeURIComponent(namespace());
  const name = encodeURIComponent(value);
  /** @param {string} path */
  const get = (path) => call("GET", path, { signal, expected: 404 });
  if (kind === "memory_id") return (await get(`memory/${name}`)).text ?? null;
  if (kind === "message_id") return (await get(`messages/${agent}/${name}`)).content ?? null;
  if (kind === "block") return (await get(`memory-blocks/${agent}/${name}`)).value ?? null;
  return null;
}
