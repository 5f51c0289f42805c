import { useEffect, useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";

/**
 * A component whose module is loaded when it is first shown.
 * @param {{ load: () => Promise<() => unknown> }} props
 */
export function Lazy({ load }) {
  const [loaded, setLoaded] = useState(/** @type {{ show: () => unknown } | null} */ (null));
  const [error, setError] = useState("");
  useEffect(() => {
    let wanted = true;
    setLoaded(null);
    load().then(
      (show) => wanted && setLoaded({ show }),
      () => wanted && setError("This view could not be loaded. Reload the page."),
    );
    return () => {
      wanted = false;
    };
  }, [load]);
  if (error) return html`<main id="main" tabindex="-1"><p class="error" role="alert">${error}</p></main>`;
  return loaded ? html`<${loaded.show} />` : html`<main id="main" tabindex="-1"></main>`;
}
