// The focus stays in the part where it was when the element that had it is removed, such as a button of an editor: from
// when this is loaded, with the first part that has such elements.

/** The element that had the focus last, with what it is in, the nearest first. @type {HTMLElement[]} */
let path = [];

/** Focus the nearest part that is left of what the focus was in: a drawer, or the view. */
function keep() {
  if (!path.length || path[0].isConnected || (document.activeElement && document.activeElement !== document.body) || document.querySelector("dialog[open]")) return;
  const left = path.find((each) => each.isConnected && each.matches(".drawer, #main"));
  (left ?? document.getElementById("main"))?.focus({ preventScroll: true });
}

/** @param {EventTarget | null} target */
function note(target) {
  path = [];
  for (let each = /** @type {HTMLElement | null} */ (target); each; each = each.parentElement) path.push(each);
}

note(document.activeElement);
document.addEventListener("focusin", ({ target }) => note(target));
// After the effects of the parts, which may set it themselves.
new MutationObserver(() => {
  if (path.length && !path[0].isConnected) requestAnimationFrame(() => setTimeout(keep));
}).observe(document.body, { childList: true, subtree: true });

/**
 * Give the focus back to the element that had it before a dialog, or to the view if that is gone.
 * @param {Element | null} former
 */
export function giveFocusBack(former) {
  const back = former instanceof HTMLElement && former.isConnected && former !== document.body ? former : document.getElementById("main");
  back?.focus({ preventScroll: true });
}
