import { ApiError } from "../api.js";
import { html } from "./html.js";

/**
 * What went wrong, next to where it did, with the request id by which the log of the service names it.
 * @param {{ error: unknown }} props An error, or null for none.
 */
export function Problem({ error }) {
  if (!error) return null;
  return html`<div class="error" role="alert"><p>${error instanceof Error ? error.message : String(error)}</p>
    ${error instanceof ApiError && error.requestId && html`<details><summary>Request id</summary><code>${error.requestId}</code></details>`}</div>`;
}
