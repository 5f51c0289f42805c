// One change of very many memories, in steps of one transaction each, with progress, and an undo of exactly what it changed.
import { call, here, memories } from "../../api.js";
import { signal } from "../../vendor/preact-signals.js";
import { changeMemories } from "../changes.js";
import { counted } from "../figures.js";
import { notify } from "../notice.js";

/** @import { Place, Schemas } from "../../api.js" */
/** @import { Change, Memory } from "../changes.js" */
/** @typedef {{ doing: string, done: number, total: number, startedAt: number, cancelled: boolean }} Run */
/** @typedef {Pick<Change, "source" | "pinned" | "archived" | "add_tags" | "remove_tags">} BulkChange */
/** @typedef {{ chosen: Memory[] } | { filters: string, ceiling: number | null, total: number }} Selection Chosen memories, or all that match. */
/** @typedef {{ doing: string, said: string, change: BulkChange, filters: string, next: number, done: number, total: number, namespace: string | null }} Unfinished */

/** The number of memories of a step. */
export const STEP = 500;
const UNFINISHED = "souvenir-unfinished";

/** The change that is being made. */
export const running = signal(/** @type {Run | null} */ (null));

/** A change of all that match that a reload of the page interrupted. */
export const unfinished = signal(stored());

/** Stop after the step that is being made. */
export const cancel = () => (running.value = running.value && { ...running.value, cancelled: true });

export function forgetUnfinished() {
  sessionStorage.removeItem(UNFINISHED);
  unfinished.value = null;
}

/** @returns {Unfinished | null} */
function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(UNFINISHED) ?? "null");
  } catch {
    return null;
  }
}

/**
 * The memories of a selection in steps. All that match are listed from the newest down, each step from the id where the
 * one before ended: what the change takes out of the list, and what others add, moves nothing.
 * @param {Selection} selection
 * @param {Place} at
 * @returns {AsyncGenerator<Memory[]>}
 */
async function* stepsOf(selection, at) {
  if ("chosen" in selection) {
    for (let place = 0; place < selection.chosen.length; place += STEP) yield selection.chosen.slice(place, place + STEP);
    return;
  }
  let next = selection.ceiling;
  for (;;) {
    const page = await memories(0, STEP, `${selection.filters}&order=newest${next === null ? "" : `&max_id=${next}`}`, { at });
    if (!page.memories.length) return;
    yield page.memories;
    next = page.memories[page.memories.length - 1].id - 1;
  }
}

/**
 * Run steps with their progress until they are done or cancelled.
 * @param {string} doing
 * @param {Selection} selection
 * @param {Place} at
 * @param {(memories: Memory[], done: number) => Promise<unknown>} step
 */
async function run(doing, selection, at, step) {
  if (running.value) throw new Error("Another change is being made; wait until it is done, or cancel it.");
  const total = "chosen" in selection ? selection.chosen.length : selection.total;
  running.value = { doing, done: 0, total, startedAt: Date.now(), cancelled: false };
  try {
    for await (const each of stepsOf(selection, at)) {
      await step(each, running.value.done + each.length);
      running.value = { ...running.value, done: running.value.done + each.length };
      if (running.value.cancelled) break;
    }
  } finally {
    running.value = null;
  }
}

/**
 * Change memories, with an Undo for those that it changed. Chosen ones show it at once.
 * @param {Selection} selection
 * @param {BulkChange} change
 * @param {string} doing Such as `Archiving`.
 * @param {string} said Such as `% archived.`, with the number of memories for the percent sign.
 */
export async function changeMany(selection, change, doing, said) {
  /** @type {Map<string, { back: BulkChange, ids: number[] }>} */
  const undo = new Map();
  let [changedCount, refusedCount, first] = [0, 0, ""];
  const chosen = "chosen" in selection ? selection.chosen : [];
  const at = here();
  /** @type {(memories: Memory[], done: number) => Promise<void>} */
  const step = async (memories, done) => {
    /** @type {Schemas["UpdateBatchResponse"]} */
    const answer = await call("POST", "memory/update-batch", { body: { ids: memories.map(({ id }) => id), ...change }, at });
    changedCount += answer.updated_ids.length;
    refusedCount += answer.refused.length;
    first ||= answer.refused[0]?.detail ?? "";
    const sources = new Map(memories.map(({ id, source }) => [id, source]));
    for (const id of answer.updated_ids) {
      const back = inverse(change, sources.get(id) ?? "");
      const name = JSON.stringify(back);
      if (!undo.has(name)) undo.set(name, { back, ids: [] });
      undo.get(name)?.ids.push(id);
    }
    if ("filters" in selection) {
      const next = memories[memories.length - 1].id - 1;
      sessionStorage.setItem(UNFINISHED, JSON.stringify({ doing, said, change, filters: selection.filters, next, done, total: selection.total, namespace: at.namespace }));
    }
  };
  const takeBack = async () => {
    if ("filters" in selection) forgetUnfinished();
    /** @type {Schemas["RefusedUpdate"][]} */
    const stayed = [];
    for (const { back, ids } of undo.values()) stayed.push(...(await changeIds(ids, back)));
    if (stayed.length) throw new Error(`${counted(stayed.length, "memory", "memories")} stayed changed: ${stayed[0].detail}`);
  };
  try {
    await changeMemories(chosen.map(({ id }) => id), { change, send: () => run(doing, selection, at, step), made: () => [...undo.values()].flatMap(({ ids }) => ids) });
    if ("filters" in selection) forgetUnfinished();
  } catch (error) {
    // A break or a reload; it can be continued.
    unfinished.value = stored();
    throw error;
  } finally {
    // Also of what a refusal or a break left half done.
    if (changedCount) notify(`${said.replace("%", () => counted(changedCount, "memory", "memories"))}${refusedCount ? ` ${refusedCount.toLocaleString("en")} stayed as before: ${first}` : ""}`, takeBack, at);
    else if (refusedCount) notify(`Nothing was changed: ${first}`);
  }
  if (!changedCount && !refusedCount) notify("Nothing to change: all are like that already.");
}

/**
 * @param {number[]} ids
 * @param {BulkChange} change
 */
const changeIds = (ids, change) =>
  changeMemories(ids, {
    change,
    send: async (at) => {
      /** @type {Schemas["RefusedUpdate"][]} */
      const refused = [];
      await run("Undoing", { chosen: ids.map((id) => /** @type {Memory} */ ({ id })) }, at, async (memories) => {
        /** @type {Schemas["UpdateBatchResponse"]} */
        const answer = await call("POST", "memory/update-batch", { body: { ids: memories.map(({ id }) => id), ...change }, at });
        refused.push(...answer.refused);
      });
      return refused;
    },
  });

/**
 * What takes a change of a memory back that was not like that.
 * @param {BulkChange} change
 * @param {string} source
 * @returns {BulkChange}
 */
function inverse({ pinned, archived, add_tags, remove_tags, ...rest }, source) {
  if (rest.source !== undefined) return { source };
  if (pinned !== undefined) return { pinned: !pinned };
  if (archived !== undefined) return { archived: !archived };
  return add_tags ? { remove_tags: add_tags } : { add_tags: remove_tags };
}

/**
 * Delete memories for good, except pinned ones.
 * @param {Selection} selection
 */
export async function deleteMany(selection) {
  let [deleted, pinned] = [0, 0];
  const chosen = "chosen" in selection ? selection.chosen : [];
  try {
    await changeMemories(chosen.map(({ id }) => id), {
      send: (at) =>
        run("Deleting", selection, at, async (memories) => {
          /** @type {Schemas["DeleteBatchResponse"]} */
          const answer = await call("POST", "memory/delete-batch", { body: { ids: memories.map(({ id }) => id) }, at });
          deleted += answer.deleted_count;
          pinned += answer.skipped_pinned?.length ?? 0;
        }),
    });
  } finally {
    notify(`${counted(deleted, "memory", "memories")} deleted.${pinned ? ` ${counted(pinned, "pinned memory stays.", "pinned memories stay.")}` : ""}`);
  }
}

/** Go on with a change that a reload interrupted. @param {Unfinished} left */
export const goOn = ({ doing, said, change, filters, next, done, total }) => changeMany({ filters, ceiling: next, total: total - done }, change, doing, said);
