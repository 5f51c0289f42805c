import { call } from "../api.js";
import { offline } from "../state.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { html } from "./html.js";

/**
 * A component whose module is loaded when it is first shown.
 * @template Props
 * @param {{ load: () => Promise<(props: any) => unknown>, waiting?: (error: unknown) => unknown } & Props} props
 *     `waiting` shows what stands there before, or why nothing does; the other properties are the component's.
 */
export function Lazy({ load, waiting = (error) => error, ...props }) {
  const [loaded, setLoaded] = useState(/** @type {{ show: (props: any) => unknown } | null} */ (null));
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (failed) {
      // A browser does not ask again for a module that it once failed to fetch. It asks the user before it drops unsaved text.
      if (!offline.value) location.reload();
      return;
    }
    let wanted = true;
    load().then(
      (show) => wanted && setLoaded({ show }),
      () => {
        if (wanted) setFailed(true);
        // Says whether the service can be reached; if not, the page is loaded again when it is back.
        call("GET", "health").catch(() => {});
      },
    );
    return () => {
      wanted = false;
    };
  }, [load, offline.value]);
  if (loaded) return html`<${loaded.show} ...${props} />`;
  return waiting(failed && html`<p class="error" role="alert">This part could not be loaded. Reload the page.</p>`);
}

const drawer = () => import("./drawer/drawer.js").then((module) => module.Drawer);

/** The drawer of a memory, loaded when it is first opened. @param {{ id: number, onClose: () => void, children?: unknown }} props */
export const LazyDrawer = (props) => html`<${Lazy} load=${drawer} ...${props} />`;

const messageDrawer = () => import("./drawer/message.js").then((module) => module.MessageDrawer);

/** The drawer of a message. @param {{ id: string, onClose: () => void, children?: unknown }} props */
export const LazyMessageDrawer = (props) => html`<${Lazy} load=${messageDrawer} ...${props} />`;

const nextSteps = () => import("./search/next-steps.js").then((module) => module.NextSteps);

/** What to do in a namespace without a question. */
export const LazyNextSteps = () => html`<${Lazy} load=${nextSteps} />`;
