import { call } from "../api.js";
import { key } from "../state.js";
import { useState } from "../vendor/preact-hooks.js";
import { Confirm } from "./confirm.js";
import { Copy } from "./copy.js";
import { html } from "./html.js";
import { notify } from "./notice.js";
import { RequestState, useRequest } from "./request.js";
import { Time } from "./text.js";

/** @import { Schemas } from "../api.js" */

const ROLES = ["read-only", "read-write", "admin"];

/** API keys: create, rotate and revoke. A new key is shown once. */
export function Keys() {
  const asked = useRequest((signal) => call("GET", "api/keys", { signal }), []);
  /** @type {Schemas["KeysResponse"] | null} */
  const answer = asked.answer;
  const [made, setMade] = useState(/** @type {Schemas["NewKeyResponse"] | null} */ (null));
  const [act, setAct] = useState(/** @type {{ of: Schemas["KeyRecord"], rotates: boolean } | null} */ (null));
  const keys = (answer?.keys ?? []).filter(({ revoked }) => !revoked);
  const confirm = async () => {
    if (!act) return;
    if (act.rotates) {
      setMade(await call("POST", `api/keys/${act.of.id}/rotate`));
    } else {
      await call("DELETE", `api/keys/${act.of.id}`);
      notify(`The key ${act.of.name} is revoked.`);
    }
    asked.again();
  };
  return html`<section aria-label="API keys">
    <h2>API keys</h2>
    <${RequestState} ...${asked} />
    ${answer && !keys.length && !key.value && html`<p>No key is needed yet: whoever reaches this service can read and write. The first key must be an admin key; from then on, every request needs one, and this page signs in with it.</p>`}
    ${
      made &&
      html`<div class="warning" role="status"><p>The key <bdi>${made.name}</bdi> is shown only now. Copy it to where it is used:</p>
        <p class="secret">${made.key}</p><p><${Copy} label="Copy the key" text=${() => made.key} />
        <button type="button" onClick=${() => setMade(null)}>I have it</button></p></div>`
    }
    ${
      keys.length > 0 &&
      html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Name</th><th>Role</th><th>Reaches</th><th>Begins with</th><th>Last used</th><th></th></tr></thead>
        <tbody>${keys.map(
          (each) => html`<tr key=${each.id}><td><bdi>${each.name}</bdi></td><td>${each.role}</td>
          <td><bdi>${[each.namespace ?? "all namespaces", ...each.prefixes].join(", ")}</bdi></td><td><code>${each.key_prefix}</code></td>
          <td>${each.last_used_at ? html`<${Time} at=${each.last_used_at} />` : "never"}</td>
          <td><button type="button" aria-label=${`Rotate ${each.name}`} onClick=${() => setAct({ of: each, rotates: true })}>Rotate</button>
            <button type="button" class="danger" aria-label=${`Revoke ${each.name}`} onClick=${() => setAct({ of: each, rotates: false })}>Revoke</button></td></tr>`,
        )}</tbody></table></div>`
    }
    <${NewKey} first=${answer !== null && !keys.length && !key.value} onMade=${(/** @type {Schemas["NewKeyResponse"]} */ created) => {
      setMade(created);
      if (!key.value) key.value = created.key;
      asked.again();
    }} />
    ${
      act &&
      html`<${Confirm} label=${act.rotates ? "Rotate the key" : "Revoke the key"} word=${act.of.name} action=${act.rotates ? "Rotate" : "Revoke"}
        onConfirm=${confirm} onClose=${() => setAct(null)}>
        <p>${act.rotates ? "The old key stops working at once, and a new one is shown." : "Programs that use this key are refused from now on."} It was used ${act.of.usage_count.toLocaleString("en")} times.</p>
      <//>`
    }
  </section>`;
}

/** @param {{ first: boolean, onMade: (made: Schemas["NewKeyResponse"]) => void }} props */
function NewKey({ first, onMade }) {
  const [error, setError] = useState("");
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const fields = new FormData(form);
    const role = first ? "admin" : fields.get("role");
    const prefixes = String(fields.get("prefixes") ?? "").split(",").map((each) => each.trim()).filter(Boolean);
    const namespace = String(fields.get("namespace") ?? "").trim();
    const scope = role === "admin" ? {} : { prefixes, ...(namespace ? { namespace } : {}) };
    try {
      onMade(await call("POST", "api/keys", { body: { name: fields.get("name"), role, ...scope } }));
      form.reset();
      setError("");
    } catch (failed) {
      setError(/** @type {Error} */ (failed).message);
    }
  };
  return html`<form class="fields" onSubmit=${submit} aria-label="New key">
      <label>Name <input name="name" required maxlength="200" autocomplete="off" /></label>
      ${
        !first &&
        html`<label>Role <select name="role">${ROLES.map((each) => html`<option key=${each}>${each}</option>`)}</select></label>
        <label>Namespace <input name="namespace" placeholder="default" autocomplete="off" /></label>
        <label>Sources, with commas <input name="prefixes" placeholder="all" autocomplete="off" /></label>`
      }
      <button>${first ? "Create the first admin key" : "Create a key"}</button>
    </form>
    ${error && html`<p class="error" role="alert">${error}</p>`}`;
}
