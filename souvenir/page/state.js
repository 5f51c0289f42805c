// The state that several parts share, as signals.
import { effect, signal } from "./vendor/preact-signals.js";

const KEY = "souvenir-key";

/** The API key, for this tab only. */
export const key = signal(sessionStorage.getItem(KEY) ?? "");
effect(() => (key.value ? sessionStorage.setItem(KEY, key.value) : sessionStorage.removeItem(KEY)));

/** The role of the key; empty while it is not known. @type {import("./vendor/preact-signals.js").Signal<string>} */
export const role = signal("");

/** Why the user has to sign in; null while nobody has to. */
export const signIn = signal(/** @type {string | null} */ (null));

/** Whether the last request did not reach the service. */
export const offline = signal(false);

/** Whether the list of keys is shown. */
export const help = signal(false);

/** Whether the palette is shown. */
export const palette = signal(false);

/** The address of the current view. */
export const route = signal(parsed());
addEventListener("hashchange", () => (route.value = parsed()));

/** @param {string} reason */
export function signedOut(reason) {
  key.value = "";
  role.value = "";
  signIn.value = reason;
}

/** @returns {{ view: string, query: URLSearchParams }} */
function parsed() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path || "search", query: new URLSearchParams(query) };
}

/**
 * Go to a view. Only what changes the place is a step of the browser's history.
 * @param {string} view
 * @param {Record<string, string | number | null>} query
 * @param {{ replace?: boolean }} [options]
 */
export function go(view, query = {}, { replace = false } = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== "");
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  const hash = `#/${view}${text ? `?${text}` : ""}`;
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
    route.value = parsed();
  } else location.hash = hash;
}
