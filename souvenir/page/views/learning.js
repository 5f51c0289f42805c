import { Feed } from "../parts/feed.js";
import { html } from "../parts/html.js";
import { Conflicts } from "../parts/learning/conflicts.js";
import { Extraction } from "../parts/learning/extraction.js";
import { Extractions } from "../parts/learning/extractions.js";
import { OpenedExtraction } from "../parts/learning/job.js";
import { role, route } from "../state.js";

/** What the service learns: extractions and conflicts that wait, a conversation to learn from, and changes as they happen. */
export function Learning() {
  const job = route.value.query.get("job");
  return html`<main id="main" tabindex="-1" class="scroll">
    <h1>Learning</h1>
    ${
      job
        ? html`<${OpenedExtraction} key=${job} id=${job} />`
        : html`<${Conflicts} />
          <${Extractions} />
          ${role.value !== "read-only" && html`<${Extraction} />`}
          <${Feed} view="learning" />`
    }
  </main>`;
}
