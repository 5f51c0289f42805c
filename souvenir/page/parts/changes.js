// Changes of memories by this page. They are shown before the service has answered, and go back if it refuses.
// Parts that show memories ask again when `changes` counts one.
import { ApiError, call, here } from "../api.js";
import { signal } from "../vendor/preact-signals.js";
import { notify } from "./notice.js";

/** @import { Place, Schemas } from "../api.js" */
/** @typedef {Schemas["MemoryRecord"]} Memory */
/** @typedef {Pick<Partial<Schemas["PatchMemoryRequest"]>, "text" | "source" | "pinned" | "archived" | "facts" | "add_tags" | "remove_tags">} Change */
/** @typedef {{ ids: Set<number>, change: Change, storedAt: number }} Pending `storedAt` is the count of `changes` with it. */

// Of stored changes, which a part may not have asked for yet, the latest are kept.
const KEPT = 200;
const ATTEMPTS = 3;

/** The number of changes that this page made, and of breaks after which everything may have changed. */
export const changes = signal(0);

const pending = signal(/** @type {Pending[]} */ ([]));

/** Why the service refused the last change of a memory, by its id. */
export const refusals = signal(/** @type {ReadonlyMap<number, unknown>} */ (new Map()));

/** The count of `changes` when a memory was asked for. @type {WeakMap<Memory, number>} */
const askedAt = new WeakMap();

/** Memories that this page is changing, with the last of its requests, after which the next one is sent. @type {Map<number, Promise<unknown>>} */
const writing = new Map();

/** The last event of the feed when a change by this page was stored, by memory. @type {Map<number, number>} */
const written = new Map();

/** Counts changes of what is known about this page's own events. */
const known = signal(0);

/**
 * Ask for memories, noting which changes their answer has.
 * @template {Memory | { memories: Memory[] }} Answer
 * @param {() => Promise<Answer>} ask
 */
export async function asked(ask) {
  const at = changes.peek();
  const answer = await ask();
  const memories = /** @type {Memory[]} */ ("memories" in answer ? answer.memories : [answer]);
  for (const memory of memories) askedAt.set(memory, at);
  return answer;
}

/** A memory with the changes that its answer does not have yet. @param {Memory} memory */
export function changed(memory) {
  const at = askedAt.get(memory) ?? changes.value;
  return pending.value.filter(({ ids, storedAt }) => storedAt > at && ids.has(memory.id)).reduce((before, { change }) => applied(before, change), memory);
}

/**
 * @param {Memory} memory
 * @param {Change} change
 * @returns {Memory}
 */
function applied(memory, { add_tags = [], remove_tags = [], facts, ...fields }) {
  const gone = new Set(remove_tags.map(folded));
  const tags = [...tagsOf(memory), ...add_tags.filter((tag) => !hasTag(memory, tag))].filter((tag) => !gone.has(folded(tag)));
  // A new text without new facts removes the old ones.
  const texts = facts ?? (fields.text === undefined ? null : []);
  const shown = texts?.map((text) => factsOf(memory).find((fact) => fact.text === text) ?? { id: 0, text, made_by: "caller", created_at: memory.updated_at });
  return /** @type {Memory} */ ({ ...memory, ...fields, tags, ...(shown ? { facts: shown } : {}) });
}

/**
 * Change memories: it shows at once, with an Undo, and goes back if the service refuses.
 * @template Answer
 * @param {number[]} ids
 * @param {{ change?: Change, send: (at: Place) => Promise<Answer>, made?: (answer: Answer) => number[], said?: string, undo?: (answer: Answer) => unknown }} options
 *     `made` are further memories that the answer names. Without `said`, the caller says what happened.
 * @returns {Promise<Answer>}
 */
export function changeMemories(ids, { change = {}, send, made = () => [], said, undo }) {
  const entry = { ids: new Set(ids), change, storedAt: Number.POSITIVE_INFINITY };
  pending.value = [...pending.value.filter(({ storedAt }, place, all) => storedAt === Number.POSITIVE_INFINITY || place >= all.length - KEPT), entry];
  if (ids.some((id) => refusals.value.has(id))) refusals.value = new Map([...refusals.value].filter(([id]) => !entry.ids.has(id)));
  const before = ids.flatMap((id) => writing.get(id) ?? []);
  const at = here();
  const sent = store(entry, before.length ? Promise.allSettled(before) : null, () => send(at), made, at);
  for (const id of ids) writing.set(id, sent);
  const done = () => {
    for (const id of ids) if (writing.get(id) === sent) writing.delete(id);
    known.value += 1;
  };
  sent.then(done, done);
  // The refusal is shown where the change was made, and here for when that is closed.
  sent.catch((error) => said && notify(`Not changed: ${error.message}`));
  if (said)
    notify(said, undo && (async () => {
      const answer = await sent.catch(() => null);
      if (answer !== null) await undo(answer);
    }));
  return sent;
}

/**
 * @template Answer
 * @param {Pending} entry
 * @param {Promise<unknown> | null} before What is being sent of the same memories.
 * @param {() => Promise<Answer>} send
 * @param {(answer: Answer) => number[]} made
 * @param {Place} at
 */
async function store(entry, before, send, made, at) {
  const ids = [...entry.ids];
  await before;
  try {
    const answer = await send();
    await noteOwn([...ids, ...made(answer)], at);
    entry.storedAt = changes.value + 1;
    return answer;
  } catch (error) {
    pending.value = pending.value.filter((each) => each !== entry);
    // What someone else changed is shown where this change was made.
    if (!(error instanceof ChangedMeanwhile)) refusals.value = new Map([...refusals.value, ...ids.map((id) => /** @type {[number, unknown]} */ ([id, error]))]);
    throw error;
  } finally {
    changes.value += 1;
  }
}

/**
 * Events about these memories up to now are this page's own.
 * @param {number[]} ids
 * @param {Place} at
 */
async function noteOwn(ids, at) {
  try {
    /** @type {Schemas["EventsResponse"]} */
    const { events } = await call("GET", "events/recent?limit=1", { at });
    for (const id of ids) written.set(id, events.at(-1)?.id ?? 0);
  } catch {
    // Then the change counts as one of someone else, which is shown on request.
  }
}

/**
 * Whether an event of the feed is about a change by this page.
 * @param {{ id: number, data: Record<string, any> }} event
 */
export function isOwn({ id, data }) {
  void known.value;
  const about = data.id ?? data.from_id;
  return writing.has(about) || (written.get(about) ?? 0) >= id;
}

/**
 * Update a memory: it shows at once, with an Undo that sends `back`.
 * @param {number} id
 * @param {Change} change
 * @param {Change} back
 * @param {string} [said]
 * @returns {Promise<Schemas["PatchMemoryResponse"]>}
 */
export const updateMemory = (id, change, back, said) =>
  changeMemories([id], {
    change,
    send: (at) => call("PATCH", `memory/${id}`, { body: change, at }),
    said,
    undo: () => updateMemory(id, back, change),
  });

/** A change that was not stored, because someone else changed the memory first. */
export class ChangedMeanwhile extends Error {
  /** @param {Memory} theirs As it is now. */
  constructor(theirs) {
    super("The memory was changed meanwhile.");
    this.theirs = theirs;
  }
}

/**
 * Update a memory unless it is no longer as expected, without a gap in which another change could be overwritten.
 * @param {number} id
 * @param {(now: Memory) => boolean} expected
 * @param {Change} change
 * @param {Place} at
 * @throws {ChangedMeanwhile} If it is not.
 */
export async function replaceExpected(id, expected, change, at) {
  for (let attempt = 1; ; attempt += 1) {
    let ifMatch = "";
    const onHeaders = (/** @type {Headers} */ headers) => {
      ifMatch = headers.get("ETag") ?? "";
    };
    /** @type {Memory} */
    const now = await call("GET", `memory/${id}`, { at, onHeaders });
    if (!expected(now)) throw new ChangedMeanwhile(now);
    try {
      return await call("PATCH", `memory/${id}`, { body: change, ifMatch, at });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 412 || attempt === ATTEMPTS) throw error;
    }
  }
}

/**
 * Set the text of a memory: it shows at once, with an Undo that brings the text and its facts back.
 * @param {Memory} memory
 * @param {string} expected The text that it replaces.
 * @param {string} text
 * @param {string} said
 */
export const changeText = (memory, expected, text, said) => {
  const facts = expected === memory.text ? factsOf(memory).map((fact) => fact.text) : [];
  const back = facts.length ? { text: expected, facts } : { text: expected };
  return changeMemories([memory.id], {
    change: { text },
    send: (at) => replaceExpected(memory.id, (now) => now.text === expected, { text }, at),
    said,
    undo: () =>
      changeMemories([memory.id], {
        change: back,
        send: (at) => replaceExpected(memory.id, (now) => now.text === text, back, at),
      }),
  });
};

/** @param {string} tag */
const folded = (tag) => tag.normalize("NFKC").toLowerCase();

/**
 * @param {Memory} memory
 * @param {string} tag
 */
export const hasTag = (memory, tag) => tagsOf(memory).some((each) => folded(each) === folded(tag));

/**
 * @param {Memory} memory
 * @returns {string[]}
 */
export const tagsOf = (memory) => (Array.isArray(memory.tags) ? memory.tags.map(String) : []);

/**
 * @param {Memory} memory
 * @returns {Schemas["FactRecord"][]}
 */
export const factsOf = (memory) =>
  Array.isArray(memory.facts) ? memory.facts.filter((fact) => typeof fact?.text === "string") : [];
