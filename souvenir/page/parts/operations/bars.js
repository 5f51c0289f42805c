import { html } from "../html.js";

/**
 * Counts over days or months as bars; the table next to it has them as text.
 * @param {{ label: string, counts: [name: string, count: number][] }} props In order.
 */
export function Bars({ label, counts }) {
  const most = Math.max(1, ...counts.map(([, count]) => count));
  const [highest] = counts.find(([, count]) => count === most) ?? [""];
  return html`<figure class="chart"><figcaption>${label}<strong>most: ${most.toLocaleString("en")}${highest ? ` on ${highest}` : ""}</strong></figcaption>
    <div class="bars" aria-hidden="true">${counts.map(
      ([name, count]) => html`<div key=${name} title=${`${name}: ${count.toLocaleString("en")}`} style=${{ height: `${(100 * count) / most}%` }}></div>`,
    )}</div>
    <div class="bar-ends faint" aria-hidden="true"><span>${counts[0]?.[0]}</span>${counts.length > 1 && html`<span>${counts[counts.length - 1][0]}</span>`}</div></figure>`;
}
