import { call } from "../../api.js";
import { key, role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { Confirm } from "../confirm.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { notify } from "../notice.js";
import { KeyForm, quotasText } from "./key-form.js";
import { dropKey, keepKey, NewKeys } from "./new-keys.js";
import { RequestState, useRequest } from "../request.js";
import { Time } from "../text.js";

/** @import { Schemas } from "../../api.js" */
/** @typedef {Schemas["KeyRecord"]} Key */

/** API keys: create, change, rotate and revoke. A new key is shown once. */
export function Keys() {
  const asked = useRequest((signal) => Promise.all([call("GET", "api/keys", { signal }), call("GET", "api/keys/me", { signal })]), [key.value]);
  /** @type {[Schemas["KeysResponse"], Schemas["OwnKeyResponse"]] | null} */
  const answer = asked.answer;
  const [act, setAct] = useState(/** @type {{ of: Key, does: "change" | "rotate" | "revoke" } | null} */ (null));
  const all = answer?.[0].keys ?? [];
  const own = answer?.[1];
  const keys = all.filter(({ revoked }) => !revoked);
  const first = answer !== null && !keys.length && !key.value;
  const close = () => setAct(null);
  const rotate = async (/** @type {Key} */ of) => {
    /** @type {Schemas["NewKeyResponse"]} */
    const rotated = await call("POST", `api/keys/${of.id}/rotate`);
    keepKey(rotated);
    if (of.id === own?.id) key.value = rotated.key;
    asked.again();
  };
  const revoke = async (/** @type {Key} */ of) => {
    await call("DELETE", `api/keys/${of.id}`);
    dropKey(of.id);
    notify(`The key ${of.name} is revoked.`);
    asked.again();
  };
  /** @param {Key} of @param {Schemas["UpdateKeyRequest"]} body */
  const change = async (of, body) => {
    const patch = async (/** @type {Schemas["UpdateKeyRequest"]} */ to) => {
      await call("PATCH", `api/keys/${of.id}`, { body: to });
      if (of.id === own?.id && to.role) role.value = to.role;
      asked.again();
    };
    await patch(body);
    const { name, role: before, quotas, prefixes, namespace } = of;
    notify(`The key ${name} is changed.`, () => patch({ name, role: before, quotas, ...(before === "admin" ? {} : { prefixes, namespace }) }));
    close();
  };
  /** @param {Schemas["UpdateKeyRequest"]} body */
  const create = async (body) => {
    /** @type {Schemas["NewKeyResponse"]} */
    const created = await call("POST", "api/keys", { body });
    keepKey(created);
    if (!key.value) key.value = created.key;
    asked.again();
  };
  return html`<section aria-label="API keys">
    <h2>API keys</h2>
    <${RequestState} error=${asked.error} slow=${asked.slow && !answer} />
    ${own && html`<${WhoAmI} own=${own} />`}
    ${first && html`<p>No key is needed yet: everyone who reaches this service can read and write. The first key must be an admin key; from then on, every request needs one, and this page signs in with it.</p>`}
    <${NewKeys} />
    ${keys.length > 0 && html`<${Table} keys=${keys} own=${own?.id} onAct=${(/** @type {Key} */ of, /** @type {"change" | "rotate" | "revoke"} */ does) => setAct({ of, does })} />`}
    ${all.length > keys.length && html`<p class="faint">${counted(all.length - keys.length, "key was", "keys were")} revoked: <bdi>${all.filter(({ revoked }) => revoked).map(({ name }) => name).join(", ")}</bdi></p>`}
    ${act?.does === "change" && html`<h3>Change <bdi>${act.of.name}</bdi></h3><${KeyForm} key=${act.of.id} of=${act.of} action="Save" onSubmit=${(/** @type {Schemas["UpdateKeyRequest"]} */ body) => change(act.of, body)} onClose=${close} />`}
    ${answer && act?.does !== "change" && html`<h3>New key</h3><${KeyForm} key=${first} first=${first} action=${first ? "Create the first admin key" : "Create a key"} onSubmit=${create} />`}
    ${
      act?.does === "rotate" &&
      html`<${Confirm} label="Rotate the key" word=${act.of.name} action="Rotate" onConfirm=${() => rotate(act.of)} onClose=${close}>
        <p>The old key stops working at once, and a new one is shown. It was used ${counted(act.of.usage_count, "time", "times")}.</p>
      <//>`
    }
    ${
      act?.does === "revoke" &&
      html`<${Confirm} label="Revoke the key" word=${act.of.name} action="Revoke" onConfirm=${() => revoke(act.of)} onClose=${close}>
        <p>Programs that use this key are refused from now on, and its unfinished jobs are cancelled. It was used ${counted(act.of.usage_count, "time", "times")}${act.of.last_used_at && html`, the last time <${Time} at=${act.of.last_used_at} />`}.</p>
        ${act.of.id === own?.id && html`<p class="warning">This page uses this key: it will ask for another one.</p>`}
      <//>`
    }
  </section>`;
}

/** @param {{ own: Schemas["OwnKeyResponse"] }} props */
function WhoAmI({ own }) {
  const by = { none: "no key", env: "the key of the setting API_KEY" }[own.type];
  const reach = [own.namespace ?? "all namespaces", ...(own.prefixes ?? [])].join(", ");
  return html`<p>This page uses ${by ?? html`the key <bdi>${own.name}</bdi>`}: ${own.role}, <bdi>${reach}</bdi>.</p>`;
}

/** @param {{ keys: Key[], own?: string | null, onAct: (of: Key, does: "change" | "rotate" | "revoke") => void }} props */
function Table({ keys, own, onAct }) {
  return html`<div class="wide-table" tabindex="0"><table><thead><tr><th>Name</th><th>Role</th><th>Reaches</th><th>Begins with</th><th>Made</th><th>Last used</th></tr></thead>
    <tbody>${keys.map(
      (each) => html`<tr key=${each.id}><td><bdi>${each.name}</bdi>${each.id === own && html` <span class="faint">(this page)</span>`}
        <div class="row-actions"><button type="button" aria-label=${`Change ${each.name}`} onClick=${() => onAct(each, "change")}>Change</button>
        <button type="button" aria-label=${`Rotate ${each.name}`} onClick=${() => onAct(each, "rotate")}>Rotate</button>
        <button type="button" class="danger" aria-label=${`Revoke ${each.name}`} onClick=${() => onAct(each, "revoke")}>Revoke</button></div></td><td>${each.role}</td>
      <td><bdi>${[each.namespace ?? "all namespaces", ...each.prefixes].join(", ")}</bdi>${quotasText(each.quotas) && html`<div class="faint">${quotasText(each.quotas)}</div>`}</td><td><code>${each.key_prefix}</code></td>
      <td><${Time} at=${each.created_at} /></td>
      <td>${each.last_used_at ? html`<${Time} at=${each.last_used_at} /> <span class="faint">${counted(each.usage_count, "request", "requests")}</span>` : "never"}</td></tr>`,
    )}</tbody></table></div>`;
}
