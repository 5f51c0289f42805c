import { call } from "../../api.js";
import { address, key, namespace } from "../../state.js";
import { Copy, curl } from "../copy.js";
import "../focus.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";
import { styles } from "../styles.js";
import { Speaker, StoredText, Time } from "../text.js";

await styles("style/drawer.css");

/** @import { Schemas } from "../../api.js" */

/** A message of an agent, and the way to its turn. @param {{ id: string, onClose: () => void, children?: unknown }} props `children` follow the details. */
export function MessageDrawer({ id, onClose, children }) {
  const path = `messages/${encodeURIComponent(namespace())}/${encodeURIComponent(id)}`;
  const asked = useRequest((signal) => call("GET", path, { signal }), [path]);
  /** @type {Schemas["MessageRecord"] | null} */
  const shown = asked.answer?.id === id ? asked.answer : null;
  return html`<aside class="drawer" aria-label="Message" tabindex="-1">
    <header><h1>Message</h1><button type="button" onClick=${onClose}>Close</button></header>
    <${RequestState} ...${asked} />
    ${
      shown &&
      html`<${StoredText} text=${shown.content} />
      <p><a href=${address("agents", { in: namespace(), show: "conversations", session: shown.session_id, message: id })}>Show this turn in its conversation</a></p>
      <h2>Said by</h2><div><${Speaker} message=${shown} />${shown.role !== "user" && shown.user ? html` to <bdi>${shown.user}</bdi>` : ""} · <${Time} at=${shown.created_at} /></div>
      <h2>Session</h2><div><bdi>${shown.session_id}</bdi></div>
      <p><${Copy} label="Copy as curl" text=${() => curl(path, undefined, Boolean(key.value))} />
        <${Copy} label="Copy as JSON" text=${() => JSON.stringify(shown, null, 2)} /></p>`
    }
    ${children}
  </aside>`;
}
