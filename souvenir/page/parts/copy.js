import { route } from "../state.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";

const SAID_MS = 2000;

/**
 * A button that copies a text, and says so.
 * @param {{ label: string, text: () => string }} props
 */
export function Copy({ label, text }) {
  const [said, setSaid] = useState({ of: "", words: "" });
  useEffect(() => {
    const timer = setTimeout(() => setSaid({ of: "", words: "" }), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    const of = text();
    try {
      await navigator.clipboard.writeText(of);
      setSaid({ of, words: "Copied" });
    } catch {
      setSaid({ of, words: "Your browser does not allow copying here; select the text instead" });
    }
  };
  // Another text was not copied.
  const shown = said.words && said.of === text();
  return html`<button type="button" onClick=${copy}>${label}</button>${shown && html` <span class="faint" role="status">${said.words}</span>`}`;
}

/**
 * A request in the shown namespace as a command for a POSIX shell. A key is taken from the variable SOUVENIR_API_KEY, so that it is never in the command.
 * @param {string} path
 * @param {unknown} body Undefined for a request without one.
 * @param {boolean} needsKey
 */
export function curl(path, body, needsKey) {
  const json = body === undefined ? "" : ` --json '${JSON.stringify(body).replaceAll("'", "'\\''")}'`;
  const header = needsKey ? ' -H "X-API-Key: $SOUVENIR_API_KEY"' : "";
  const namespace = route.value.query.get("in");
  const scope = namespace ? ` -H 'X-Namespace: ${namespace.replaceAll("'", "'\\''")}'` : "";
  return `curl ${location.origin}/${path}${header}${scope}${json}`;
}
