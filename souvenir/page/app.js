// The frame: sign-in, navigation, keys, and the view of the address.
import { ApiError, call, ownKey } from "./api.js";
import { Help, Palette } from "./parts/dialogs.js";
import { html } from "./parts/html.js";
import { Lazy } from "./parts/lazy.js";
import { NamespaceChooser } from "./parts/namespace.js";
import { Notice } from "./parts/notice.js";
import { SignIn } from "./parts/sign-in.js";
import { address, go, help, namespace, offline, ownNamespace, palette, role, route, signIn } from "./state.js";
import { render } from "./vendor/preact.js";
import { useEffect } from "./vendor/preact-hooks.js";
import { Search } from "./views/search.js";

const agents = () => import("./views/agents.js").then((module) => module.Agents);
const forget = () => import("./views/forget.js").then((module) => module.Forget);
const knowledge = () => import("./views/knowledge.js").then((module) => module.Knowledge);
const learning = () => import("./views/learning.js").then((module) => module.Learning);
const memories = () => import("./views/memories.js").then((module) => module.Memories);
const operations = () => import("./views/operations.js").then((module) => module.Operations);

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

async function start() {
  try {
    const own = await ownKey();
    ownNamespace.value = own.namespace ?? null;
    role.value = own.role;
    signIn.value = null;
  } catch (error) {
    if (!(error instanceof ApiError) && !(error instanceof TypeError)) throw error;
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

function Top() {
  const { view, query } = route.value;
  return html`<header class="top">
    <strong class="brand">Souvenir</strong>
    <${NamespaceChooser} />
    <form role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <input id="question" type="search" aria-label="Ask or search" placeholder="Ask or search …" autocomplete="off"
        value=${view === "search" ? query.get("q") : ""}
        onInput=${(/** @type {InputEvent} */ event) => {
          go("search", { q: /** @type {HTMLInputElement} */ (event.target).value }, { replace: view === "search" });
        }} />
    </form>
    <button type="button" onClick=${() => (palette.value = true)} title="Ctrl K">Commands</button>
  </header>`;
}

/**
 * A view. Another namespace is another view, so that nothing of one stays on the screen in the other.
 * @param {{ show: () => unknown }} props
 */
const View = ({ show }) => show();

function App() {
  useReconnection();
  if (signIn.value !== null) return html`<${SignIn} reason=${signIn.value} onSignedIn=${start} />`;
  const shown = VIEWS[route.value.view] ?? VIEWS.search;
  return html`<div class="frame">
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => {
      event.preventDefault();
      document.getElementById("main")?.focus();
    }}>Skip to the content</a>
    <${Top} />
    ${offline.value && html`<div class="bar" role="status">The service cannot be reached. Trying again …</div>`}
    <nav aria-label="Views"><ul>
      ${Object.entries(VIEWS).map(
        ([id, { name }]) => html`<li key=${id}>
        <a href=${address(id)} aria-current=${VIEWS[id] === shown ? "page" : undefined}>${name}</a></li>`,
      )}
    </ul></nav>
    <${View} key=${`${shown.name} ${namespace()}`} show=${shown.show} />
    <${Notice} />
    <${Help} />
    <${Palette} views=${VIEWS} />
  </div>`;
}

const place = document.getElementById("page");
if (place) render(html`<${App} />`, place);
void start();
