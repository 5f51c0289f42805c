import { useEffect, useRef } from "../vendor/preact-hooks.js";
import UPlot from "../vendor/uplot.js";
import { html } from "./html.js";
import { colour, onTheme, styles } from "./styles.js";

await styles("vendor/uplot.css");

const HEIGHT = 144;
/** The least span, in seconds. */
const LEAST_S = 60;
const CLOCK = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const COLOURS = ["meaning", "words"];
/** Lines differ by their dashes too, not by colour alone. */
const DASHES = [[], [6, 4]];

/**
 * Values over time as lines.
 * @param {{ label: string, names: string[], times: number[], values: (number | null)[][], text: (value: number) => string }} props
 *     `times` in seconds since 1970, `values` a list for each name, null where there is none; `text` writes a value with its unit.
 */
export function Chart({ label, names, times, values, text }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const chart = useRef(/** @type {UPlot | null} */ (null));
  const data = useRef(/** @type {UPlot.AlignedData} */ ([[]]));
  data.current = [times, ...values];
  useEffect(() => {
    const element = /** @type {HTMLDivElement} */ (place.current);
    const draw = () => {
      chart.current?.destroy();
      chart.current = new UPlot(options(names, text, element.clientWidth), data.current, element);
    };
    draw();
    const resized = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    const end = onTheme(draw);
    return () => {
      end();
      resized.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, []);
  useEffect(() => chart.current?.setData(data.current), [times.at(-1)]);
  const last = names.map((name, place) => {
    const value = values[place].at(-1);
    return value === null || value === undefined ? "" : `${names.length > 1 ? `${name} ` : ""}${text(value)}`;
  });
  return html`<figure class="chart"><figcaption>${label}<strong>${last.filter(Boolean).join(" · ")}</strong></figcaption>
    <div ref=${place} aria-hidden="true"></div></figure>`;
}

/**
 * @param {string[]} names
 * @param {(value: number) => string} text
 * @param {number} width
 * @returns {UPlot.Options}
 */
const options = (names, text, width) => {
  const axis = { stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { range: (_, oldest, newest) => [Math.min(oldest, newest - LEAST_S), newest] }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [{ ...axis, size: 24, space: 80, values: (_, ticks) => ticks.map((at) => CLOCK.format(at * 1000)) }, { ...axis, size: 72, values: (_, ticks) => ticks.map(text) }],
    series: [{}, ...names.map((_, place) => ({ stroke: colour(COLOURS[place]), dash: DASHES[place], width: 2, points: { show: false } }))],
  };
};
