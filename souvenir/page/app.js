// The frame: sign-in, navigation, keys, and the view of the address.
import { ApiError, call, ownKey, Unreachable } from "./api.js";
import { html } from "./parts/html.js";
import { Lazy } from "./parts/lazy.js";
import { connected, useLive } from "./parts/live.js";
import { NamespaceChooser } from "./parts/namespace.js";
import { Notice } from "./parts/notice.js";
import { useWaiting } from "./parts/waiting.js";
import { address, go, help, key, namespace, offline, palette, route, signedIn, signedOut, signIn } from "./state.js";
import { render } from "./vendor/preact.js";
import { useEffect } from "./vendor/preact-hooks.js";
import { signal } from "./vendor/preact-signals.js";
import { Search } from "./views/search.js";

const agents = () => import("./views/agents.js").then((module) => module.Agents);
const dialogs = () => import("./parts/dialogs.js").then((module) => module.Dialogs);
const forget = () => import("./views/forget.js").then((module) => module.Forget);
const knowledge = () => import("./views/knowledge.js").then((module) => module.Knowledge);
const learning = () => import("./views/learning.js").then((module) => module.Learning);
const memories = () => import("./views/memories.js").then((module) => module.Memories);
const operations = () => import("./views/operations.js").then((module) => module.Operations);
const signInForm = () => import("./parts/sign-in.js").then((module) => module.SignIn);

/** @param {() => Promise<() => unknown>} load */
const lazy = (load) => () =>
  html`<${Lazy} load=${load} waiting=${(/** @type {unknown} */ error) => html`<main id="main" tabindex="-1">${error}</main>`} />`;

/** @type {Record<string, { name: string, show: () => unknown }>} */
export const VIEWS = {
  search: { name: "Search", show: () => html`<${Search} />` },
  memories: { name: "Memories", show: lazy(memories) },
  agents: { name: "Agents", show: lazy(agents) },
  knowledge: { name: "Knowledge", show: lazy(knowledge) },
  learning: { name: "Learning", show: lazy(learning) },
  forget: { name: "Forget", show: lazy(forget) },
  operations: { name: "Operations", show: lazy(operations) },
};

const RETRY_MS = 1000;
const REFUSED_MS = 5000;

/** Why the service does not say what the key may do, which is asked again. */
const refused = signal("");

async function start() {
  try {
    signedIn(await ownKey());
    refused.value = "";
  } catch (error) {
    if (!(error instanceof ApiError) && !(error instanceof Unreachable)) throw error;
    refused.value = error instanceof ApiError && error.status !== 401 ? error.message : "";
    if (refused.value) setTimeout(start, REFUSED_MS);
  }
}

/** Ask until the service answers again. */
function useReconnection() {
  useEffect(() => {
    if (!offline.value) return;
    const timer = setInterval(() => call("GET", "health").then(start, () => {}), RETRY_MS);
    return () => clearInterval(timer);
  }, [offline.value]);
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  const typing = target.matches("input, textarea, select");
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    palette.value = true;
  } else if (event.key === "/" && !typing) {
    event.preventDefault();
    document.getElementById("question")?.focus();
  } else if (event.key === "?" && !typing) help.value = true;
}
addEventListener("keydown", onKey);

/** From the question to its results, where j and k move. */
const toResults = () => /** @type {HTMLElement | null} */ (document.querySelector("#main [role=listbox]"))?.focus();

function Top() {
  const { view, query } = route.value;
  return html`<header class="top">
    <a class="brand" href=${address("search")}>Souvenir</a>
    <${NamespaceChooser} />
    <form role="search" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      toResults();
    }}>
      <input id="question" type="search" aria-label="Ask or search" placeholder="Ask or search …  ( / )" autocomplete="off"
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "ArrowDown" && toResults()}
        value=${view === "search" ? (query.get("q") ?? "") : ""}
        onInput=${(/** @type {InputEvent} */ event) => {
          const { value } = /** @type {HTMLInputElement} */ (event.target);
          const kept = view === "search" ? Object.fromEntries([...query].filter(([name]) => !["memory", "message"].includes(name))) : {};
          go("search", { ...kept, q: value }, { replace: view === "search" });
        }} />
    </form>
    <span class="live" role="status" title=${connected.value ? "Changes are shown as they happen" : "Not connected to the changes of the service"}>${connected.value ? "●" : "○"}<span> ${connected.value ? "live" : "not live"}</span></span>
    <button type="button" onClick=${() => (palette.value = true)} title="Ctrl K or ⌘K">Commands</button>
    ${key.value && html`<button type="button" onClick=${() => signedOut("You are signed out.")}>Sign out</button>`}
  </header>`;
}

/** @param {{ shown: { name: string } }} props */
function Navigation({ shown }) {
  const waiting = useWaiting();
  return html`<nav aria-label="Views"><ul>
    ${Object.entries(VIEWS).map(
      ([id, { name }]) => html`<li key=${id}><a href=${address(id)} aria-current=${VIEWS[id] === shown ? "page" : undefined}>${name}${
        id === "learning" && waiting.count > 0 && html` <span class="count" title=${`Waiting for a decision: ${waiting.title}`}>${waiting.count}</span>`
      }</a></li>`,
    )}
  </ul></nav>`;
}

/**
 * A view. Another namespace is another view, so that nothing of one stays on the screen in the other.
 * @param {{ show: () => unknown }} props
 */
const View = ({ show }) => show();

function App() {
  useReconnection();
  useLive();
  if (signIn.value !== null) return html`<${Lazy} load=${signInForm} reason=${refused.value || signIn.value} onSignedIn=${start} />`;
  const shown = VIEWS[route.value.view] ?? VIEWS.search;
  return html`<div class="frame">
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => {
      event.preventDefault();
      document.getElementById("main")?.focus();
    }}>Skip to the content</a>
    <${Top} />
    ${offline.value && html`<div class="bar" role="status">The service cannot be reached. Trying again …</div>`}
    ${refused.value && html`<div class="bar" role="alert">${refused.value} Trying again …</div>`}
    <${Navigation} shown=${shown} />
    <${View} key=${`${shown.name} ${namespace()}`} show=${shown.show} />
    <${Notice} />
    ${(help.value || palette.value) && html`<${Lazy} load=${dialogs} views=${VIEWS} />`}
  </div>`;
}

const place = document.getElementById("page");
if (place) render(html`<${App} />`, place);
void start();
