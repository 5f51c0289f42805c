import { call } from "../../api.js";
import { useState } from "../../vendor/preact-hooks.js";
import { changeMemories, changes } from "../changes.js";
import { html } from "../html.js";
import { Problem } from "../problem.js";
import { RequestState, useRequest } from "../request.js";
import { legible, MemoryLink } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @import { Memory } from "../changes.js" */

const TYPES = ["related_to", "blocked_by", "caused_by", "reinforces"];
const FOUND = 6;
const SHOWN_CHARS = 120;

/** @param {string} type */
const named = (type) => type.replaceAll("_", " ");

/**
 * @param {number} from
 * @param {number} to
 * @param {string} type
 * @param {string} [said]
 * @returns {Promise<unknown>}
 */
const link = (from, to, type, said) =>
  changeMemories([from], { send: (at) => call("POST", `memory/${from}/link`, { body: { to_id: to, type }, at }), said, undo: () => unlink(from, to, type) });

/**
 * @param {number} from
 * @param {number} to
 * @param {string} type
 * @param {string} [said]
 * @returns {Promise<unknown>}
 */
const unlink = (from, to, type, said) =>
  changeMemories([from], { send: (at) => call("DELETE", `memory/${from}/link/${to}?type=${type}`, { at }), said, undo: () => link(from, to, type) });

/**
 * The links of a memory with the texts of the others; those of versions are shown among the versions.
 * @param {{ memory: Memory, writes: boolean }} props
 */
export function Links({ memory, writes }) {
  const asked = useRequest(
    async (signal) => {
      /** @type {Schemas["LinksResponse"]} */
      const { links, memory_id } = await call("GET", `memory/${memory.id}/links?include_incoming=true`, { signal });
      const others = links.filter(({ type }) => type !== "supersedes").map((each) => ({ ...each, other: each.direction === "incoming" ? each.from_id : each.to_id }));
      /** @type {Schemas["GetBatchResponse"]} */
      const { memories } = others.length ? await call("POST", "memory/get-batch", { body: { ids: others.slice(0, 1000).map(({ other }) => other) }, signal }) : { memories: [] };
      return { memory_id, others, texts: new Map(memories.map(({ id, text }) => [id, text.slice(0, SHOWN_CHARS)])) };
    },
    [memory.id, changes.value],
  );
  const answer = asked.answer?.memory_id === memory.id ? asked.answer : null;
  return html`<${RequestState} ...${asked} />
    ${memory.conflicts_with ? html`<p>Contradicts <${MemoryLink} id=${memory.conflicts_with} />.</p>` : null}
    ${(writes || (answer !== null && answer.others.length > 0)) && html`<h2>Links</h2>`}
    ${
      answer && answer.others.length > 0 &&
      html`<ul class="links">${answer.others.map(({ from_id, to_id, type, direction, other }) => {
        const title = `${named(type)} ${direction === "incoming" ? "←" : "→"}`;
        return html`<li key=${`${type}${from_id}-${to_id}`}>${title} <${MemoryLink} id=${other} />
          ${writes && TYPES.includes(type) && html` <button type="button" aria-label=${`Remove the link ${title} Memory ${other}`} onClick=${() => unlink(from_id, to_id, type, "Link removed.").catch(() => {})}>×</button>`}
          <div class="faint" dir="auto">${legible(answer.texts.get(other) ?? "")}</div></li>`;
      })}</ul>`
    }
    ${writes && html`<${NewLink} key=${memory.id} memory=${memory} />`}`;
}

/** A link to a memory that is named by its id or found by words. @param {{ memory: Memory }} props */
function NewLink({ memory }) {
  const [typed, setTyped] = useState("");
  const [type, setType] = useState(TYPES[0]);
  const [found, setFound] = useState(/** @type {{ id: number, text: string }[] | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  /** @param {number} id */
  const add = async (id) => {
    try {
      await link(memory.id, id, type, "Link added.");
      setTyped("");
      setFound(null);
      setError(null);
    } catch {
      // The drawer shows why; what was typed stays.
    }
  };
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    const words = typed.trim();
    if (/^\d+$/.test(words)) return add(Number(words));
    try {
      /** @type {Schemas["SearchResponse"]} */
      const { results } = await call("POST", "search", { body: { query: words, k: FOUND } });
      setFound(results.filter(({ id }) => id !== memory.id));
      setError(null);
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<form class="add-tag" onSubmit=${submit}>
      <select aria-label="Kind of the link" value=${type} onChange=${(/** @type {Event} */ event) => setType(/** @type {HTMLSelectElement} */ (event.target).value)}>
        ${TYPES.map((each) => html`<option key=${each} value=${each}>${named(each)}</option>`)}</select>
      <input aria-label="Memory to link with" placeholder="Id or words" autocomplete="off" dir="auto" value=${typed}
        onInput=${(/** @type {Event} */ event) => setTyped(/** @type {HTMLInputElement} */ (event.target).value)} />
      <button disabled=${!typed.trim()}>Link</button></form>
    <${Problem} error=${error} />
    ${found && !found.length && html`<p class="faint" role="status">No other memory was found.</p>`}
    ${found && found.length > 0 && html`<ul class="links" aria-label="Found memories">${found.map(({ id, text }) => html`<li key=${id}><button type="button" aria-label=${`Link with memory ${id}`} onClick=${() => add(id)}>Memory ${id}</button> <span dir="auto">${legible(text.slice(0, SHOWN_CHARS))}</span></li>`)}</ul>`}`;
}
