import { useEffect } from "../vendor/preact-hooks.js";

/**
 * Move through a list with j, k and the arrow keys, and close with Esc.
 * @param {number} count
 * @param {number} selected The place in the list; -1 for none.
 * @param {(place: number) => void} select
 */
export function useListKeys(count, selected, select) {
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const onKey = (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (event.key === "Escape" && selected >= 0 && !target.matches("textarea")) select(-1);
      if (target.matches("input, textarea, select")) return;
      if (["j", "ArrowDown"].includes(event.key) && selected < count - 1) select(selected + 1);
      else if (["k", "ArrowUp"].includes(event.key) && selected > 0) select(selected - 1);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [count, selected, select]);
}
