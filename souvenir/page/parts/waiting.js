// What waits for a decision of the user; the navigation shows the number.
import { call } from "../api.js";
import { changes } from "./changes.js";
import { counted } from "./figures.js";
import { arrived, begun } from "./live.js";
import { useRequest } from "./request.js";

/**
 * The number of conflicts between memories and of extractions that wait for an approval, in the shown namespace.
 * @returns {{ count: number, title: string }}
 */
export function useWaiting() {
  const conflicts = useTotal("memory/conflicts?limit=1", "conflict.");
  const extractions = useTotal("memory/extract?waiting=true&limit=1", "extraction.");
  const titles = [
    conflicts && counted(conflicts, "conflict", "conflicts"),
    extractions && counted(extractions, "extraction that waits for approval", "extractions that wait for approval"),
  ];
  return { count: conflicts + extractions, title: titles.filter(Boolean).join(", ") };
}

/**
 * The total of a list, asked again after events of a kind.
 * @param {string} path
 * @param {string} kind The beginning of the types of its events.
 * @returns {number}
 */
function useTotal(path, kind) {
  const last = arrived.value.find(({ type }) => type.startsWith(kind))?.id ?? 0;
  const ask = (/** @type {AbortSignal} */ signal) => call("GET", path, { signal });
  return useRequest(begun.value === null ? null : ask, [begun.value, last, changes.value]).answer?.total ?? 0;
}
