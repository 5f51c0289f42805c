import { call } from "../../api.js";
import { html } from "../html.js";
import { RequestState, useRequest } from "../request.js";

/** @import { Schemas } from "../../api.js" */

/**
 * The model that reads conversations; asked once.
 * @returns {{ status: Schemas["ExtractStatus"] | null, error: unknown, slow: boolean }}
 */
export function useModel() {
  const { answer, error, slow } = useRequest((signal) => call("GET", "extract/status", { signal }), []);
  return { status: answer, error, slow };
}

/** Which model reads, or how to configure one and what works without. @param {{ status: Schemas["ExtractStatus"] | null, error: unknown, slow: boolean }} props */
export function Model({ status, error, slow }) {
  if (!status) return html`<${RequestState} error=${error} slow=${slow} />`;
  if (status.enabled)
    return html`<p class="faint">Read by <bdi>${status.model}</bdi> (${status.provider}). ${status.status !== "healthy" && html`<strong>It did not answer recently: ${status.status}.</strong>`}</p>`;
  return html`<div class="warning"><p>No language model is configured${
    status.fallback_add_enabled
      ? ", so only sentences that state something durable are kept, word for word, and nothing is corrected."
      : ", so nothing can be learned from conversations here. Everything else works."
  }</p>
    <p>Set a model where the service runs, for example one of Ollama on the same machine, and restart it:</p>
    <pre tabindex="0">EXTRACT_PROVIDER=ollama EXTRACT_MODEL=llama3.1</pre>
    ${!status.fallback_add_enabled && html`<p>Without a model, <code>EXTRACT_FALLBACK_ADD=true</code> keeps sentences such as “I'm allergic to nuts” word for word.</p>`}</div>`;
}
