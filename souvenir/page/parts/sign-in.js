import { key } from "../state.js";
import { html } from "./html.js";

/** @param {{ reason: string, onSignedIn: () => void }} props */
export function SignIn({ reason, onSignedIn }) {
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    key.value = String(new FormData(form).get("key")).trim();
    onSignedIn();
  };
  return html`<main class="sign-in">
    <h1>Sign in to Souvenir</h1>
    <form onSubmit=${submit}>
      <label for="key">API key</label>
      <input id="key" name="key" type="password" autocomplete="off" required autofocus />
      ${reason && html`<p class="error" role="alert">${reason}</p>`}
      <button>Sign in</button>
      <p class="faint">The key is kept in this tab until you close it.</p>
    </form>
  </main>`;
}
