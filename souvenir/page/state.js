// The state that several parts share, as signals.
import { effect, signal } from "./vendor/preact-signals.js";

/** @import { Schemas } from "./api.js" */

const KEY = "souvenir-key";
const REASON = "souvenir-signed-out";

/** The API key, for this tab only. */
export const key = signal(sessionStorage.getItem(KEY) ?? "");
effect(() => (key.value ? sessionStorage.setItem(KEY, key.value) : sessionStorage.removeItem(KEY)));

/** The role of the key; empty while it is not known. @type {import("./vendor/preact-signals.js").Signal<string>} */
export const role = signal("");

/** The only namespace of the key; null for a key of all. */
export const ownNamespace = signal(/** @type {string | null} */ (null));

/** The sources that the key is limited to; null for a key of whole namespaces. */
export const ownPrefixes = signal(/** @type {string[] | null} */ (null));

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

/** The namespace that the page shows; part of every address unless it is the key's own or `default`. */
export const namespace = () => route.value.query.get("in") ?? ownNamespace.value ?? "default";

/**
 * Ask for a key. What was shown, typed or kept with the key before is removed from the tab with it.
 * @param {string} reason
 */
export function signedOut(reason) {
  if (!key.value) {
    signIn.value = sessionStorage.getItem(REASON) ?? reason;
    return;
  }
  key.value = "";
  for (const name of Object.keys(sessionStorage)) if (name.startsWith("souvenir-")) sessionStorage.removeItem(name);
  sessionStorage.setItem(REASON, reason);
  location.reload();
}

/** The service answered 401. @param {string} sent The key of the request, which may have been changed since. */
export function keyRefused(sent) {
  if (sent === key.value) signedOut(sent ? "The service does not accept this key." : "");
}

/** @param {Schemas["OwnKeyResponse"]} own What the key may do. */
export function signedIn(own) {
  sessionStorage.removeItem(REASON);
  ownNamespace.value = own.namespace ?? null;
  ownPrefixes.value = own.prefixes?.length ? own.prefixes : null;
  role.value = own.role;
  signIn.value = null;
}

/** @returns {{ view: string, query: URLSearchParams }} */
function parsed() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path || "search", query: new URLSearchParams(query) };
}

/**
 * The address of a view, in the namespace that is shown unless `query` has another one in `in`.
 * @param {string} view
 * @param {Record<string, string | number | null>} [query]
 */
export function address(view, query = {}) {
  const all = { in: route.value.query.get("in"), ...query };
  const kept = Object.entries(all).filter(([, value]) => value !== null && value !== "");
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return `#/${view}${text ? `?${text}` : ""}`;
}

/**
 * Go to a view. Only what changes the place is a step of the browser's history.
 * @param {string} view
 * @param {Record<string, string | number | null>} query
 * @param {{ replace?: boolean }} [options]
 */
export function go(view, query = {}, { replace = false } = {}) {
  const hash = address(view, query);
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
    route.value = parsed();
  } else location.hash = hash;
}
