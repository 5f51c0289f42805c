import { call, here } from "../../api.js";
import { role } from "../../state.js";
import { useState } from "../../vendor/preact-hooks.js";
import { counted } from "../figures.js";
import { html } from "../html.js";
import { notify } from "../notice.js";
import { Problem } from "../problem.js";
import { useRequest } from "../request.js";

const SOURCE = "souvenir-sample";

/** @type {[text: string, place: string, tags: string[]][]} */
const SAMPLES = [
  ["Biscuit, the user's beagle, turns five in May.", "family", ["pets", "family"]],
  ["The user's sister Mira lives in Lisbon and teaches chemistry.", "family", ["family"]],
  ["Ana is allergic to peanuts and carries an EpiPen.", "family", ["family", "health"]],
  ["The user prefers window seats on long flights.", "travel", ["travel"]],
  ["The billing service moves to Postgres 17 in May.", "work/billing", ["database", "decision"]],
  ["Deployments are frozen between 20 December and 3 January.", "work/operations", ["decision"]],
  ["The staging database runs in Frankfurt.", "work/operations", ["database"]],
  ["Retries of the payment client stop after three attempts.", "work/billing", ["payments"]],
];

/** Sample memories for an empty namespace, which can be removed whole. */
export function Samples() {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const asked = useRequest(
    async (signal) => {
      const [all, samples] = await Promise.all([
        call("GET", "memories/count?include_archived=true", { signal }),
        call("GET", `memories/count?source=${SOURCE}&source_boundary=true&include_archived=true`, { signal }),
      ]);
      return { all: all.count, samples: samples.count };
    },
    [],
  );
  const remove = async () => {
    const { deleted_count } = await call("POST", "memory/delete-by-prefix", {
      body: { source_prefix: `${SOURCE}/`, skip_snapshot: true },
    });
    notify(`${counted(deleted_count, "sample memory is", "sample memories are")} removed.`);
    asked.again();
  };
  const add = async () => {
    const at = here();
    const memories = SAMPLES.map(([text, place, tags]) => ({ text, source: `${SOURCE}/${place}`, tags }));
    await call("POST", "memory/add-batch", { body: { memories } });
    notify(`${SAMPLES.length} sample memories are added. Ask: where does the sister live?`, remove, at);
    asked.again();
  };
  /** @param {() => Promise<void>} act */
  const tried = (act) => () => act().catch((failed) => setError(failed));
  if (!asked.answer || role.value === "read-only") return null;
  const { all, samples } = asked.answer;
  return html`<${Problem} error=${error} />
    ${!all && html`<p>Nothing is stored here yet. <button type="button" onClick=${tried(add)}>Try it with sample memories</button></p>`}
    ${samples > 0 && html`<p>${counted(samples, "sample memory is", "sample memories are")} stored. <button type="button" onClick=${tried(remove)}>Remove the samples</button></p>`}`;
}
