import { useEffect } from "../vendor/preact-hooks.js";

/**
 * Move through a list with j, k and the arrow keys, with Shift to choose all on the way, and close with Esc.
 * @param {number} count
 * @param {number} selected The place in the list; -1 for none.
 * @param {(place: number) => void} select
 * @param {((from: number, to: number) => void)} [extend] Chooses the row that is left and the one that is reached.
 */
export function useListKeys(count, selected, select, extend) {
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const onKey = (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (event.key === "Escape" && selected >= 0 && !target.matches("textarea")) select(-1);
      // In a detail drawer, the arrow keys scroll it.
      if (target.matches("input, textarea, select") || (event.key.startsWith("Arrow") && target.closest("aside"))) return;
      if (event.key === "Enter" && target.matches("[role=listbox]") && selected >= 0) {
        event.preventDefault();
        /** @type {HTMLElement | null} */ (document.querySelector("aside.drawer"))?.focus();
        return;
      }
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      const step = ["j", "ArrowDown"].includes(key) ? 1 : ["k", "ArrowUp"].includes(key) ? -1 : 0;
      const next = selected + step;
      if (!step || next < 0 || next >= count) return;
      event.preventDefault();
      if (event.shiftKey && extend && selected >= 0) extend(selected, next);
      select(next);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [count, selected, select, extend]);
}
