import { useLayoutEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { html } from "../html.js";
import { Problem } from "../problem.js";

/** @import { Schemas } from "../../api.js" */

const ROLES = ["read-only", "read-write", "admin"];

/** @type {Record<string, string>} */
const QUOTAS = {
  requests_per_minute: "Requests per minute",
  memories: "Memories",
  stored_bytes: "Stored bytes",
  jobs_per_day: "Jobs per day",
  extractions_per_day: "Extractions per day",
};

/**
 * The fields of a key: a new one, or `of` an existing one.
 * @param {{ of?: Schemas["KeyRecord"], first?: boolean, action: string, onSubmit: (body: Schemas["UpdateKeyRequest"]) => Promise<unknown>, onClose?: () => void }} props
 *     `first` for the first key, which must be an admin's. What was typed stays if `onSubmit` fails.
 */
export function KeyForm({ of, first = false, action, onSubmit, onClose }) {
  const [role, setRole] = useState(first ? "admin" : (of?.role ?? ROLES[0]));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const place = useRef(/** @type {HTMLFormElement | null} */ (null));
  // Before the paint: a later focus would take what the user has begun to type in another field.
  useLayoutEffect(() => {
    if (of) place.current?.querySelector("input")?.focus();
  }, []);
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const body = bodyOf(new FormData(form), first ? "admin" : role);
    try {
      if (body.role !== "admin" && !body.namespace && !body.prefixes?.length) throw new Error("Name a namespace, or the sources that the key may reach. Only an admin key reaches everything.");
      await onSubmit(body);
      if (!of) {
        form.reset();
        setRole(first ? "admin" : ROLES[0]);
      }
      setError(null);
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<form ref=${place} onSubmit=${submit} aria-label=${of ? `Change ${of.name}` : "New key"} class=${of ? "key-form" : ""}>
      <div class="field-row">
      <label>Name <input name="name" required maxlength="200" autocomplete="off" dir="auto" defaultValue=${of?.name ?? ""} /></label>
      ${!first && html`<label>Role <select name="role" value=${role} onChange=${(/** @type {any} */ event) => setRole(event.target.value)}>${ROLES.map((each) => html`<option key=${each}>${each}</option>`)}</select></label>`}
      ${
        role !== "admin" &&
        !first &&
        html`<label>Namespace <input name="namespace" autocomplete="off" dir="auto" defaultValue=${of?.namespace ?? ""} /></label>
        <label>Sources, with commas <input name="prefixes" placeholder="all" autocomplete="off" dir="auto" defaultValue=${of?.prefixes.join(", ") ?? ""} /></label>`
      }
      </div>
      ${role !== "admin" && !first && html`<p class="faint">A ${role} key needs a namespace, or sources, or both.${!of && " With sources alone, the namespace is default."}</p>`}
      ${
        !first &&
        html`<details><summary>Quotas</summary><div class="field-row">${Object.entries(QUOTAS).map(
          ([name, label]) => html`<label key=${name}>${label} <input name=${name} type="number" min="0" placeholder="no limit" defaultValue=${of?.quotas[/** @type {keyof Schemas["KeyQuotas"]} */ (name)] ?? ""} /></label>`,
        )}</div></details>`
      }
      <p><button>${action}</button> ${onClose && html`<button type="button" onClick=${onClose}>Close</button>`}</p>
      <${Problem} error=${error} />
    </form>`;
}

/**
 * @param {FormData} fields
 * @param {string} role
 * @returns {Schemas["UpdateKeyRequest"]}
 */
function bodyOf(fields, role) {
  const text = (/** @type {string} */ name) => String(fields.get(name) ?? "").trim();
  const prefixes = text("prefixes").split(",").map((each) => each.trim()).filter(Boolean);
  const namespace = text("namespace");
  const quotas = Object.fromEntries(Object.keys(QUOTAS).map((name) => [name, text(name) === "" ? null : Number(text(name))]));
  return {
    name: text("name"),
    role: /** @type {Schemas["Role"]} */ (role),
    quotas,
    // An admin key reaches everything.
    ...(role === "admin" ? {} : { prefixes, ...(namespace ? { namespace } : {}) }),
  };
}

/**
 * The quotas of a key in words; empty without any.
 * @param {Schemas["KeyQuotas"]} quotas
 */
export const quotasText = (quotas) =>
  Object.entries(quotas)
    .filter(([, limit]) => limit !== null && limit !== undefined)
    .map(([name, limit]) => `${QUOTAS[name].toLowerCase()}: ${Number(limit).toLocaleString("en")}`)
    .join(", ");
