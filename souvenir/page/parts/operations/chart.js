import { useEffect, useRef } from "../../vendor/preact-hooks.js";
import UPlot from "../../vendor/uplot.js";
import { html } from "../html.js";
import { colour, onTheme, styles } from "../styles.js";

await styles("vendor/uplot.css");

const HEIGHT = 144;
/** The least span, in seconds. */
const LEAST_S = 60;
const CLOCK = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const COLOURS = ["meaning", "words"];
/** Steps of an axis of counts. */
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();
/** Lines differ by their dashes too, not by colour alone. */
const DASHES = [[], [6, 4]];

/**
 * Values over time as lines.
 * @param {{ label: string, names: string[], times: number[], values: (number | null)[][], text: (value: number) => string, whole?: boolean }} props
 *     `times` in seconds since 1970, `values` a list for each name, null where there is none; `text` writes a value with its unit;
 *     `whole` for counts, between which the axis has no marks.
 */
export function Chart({ label, names, times, values, text, whole = false }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const chart = useRef(/** @type {UPlot | null} */ (null));
  const data = useRef(/** @type {UPlot.AlignedData} */ ([[]]));
  data.current = [times, ...values];
  useEffect(() => {
    const element = /** @type {HTMLDivElement} */ (place.current);
    const draw = () => {
      chart.current?.destroy();
      chart.current = new UPlot(options(names, text, whole, element.clientWidth), data.current, element);
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
 * The times that are shown. uPlot passes a day after the first sample where there is only one, so the samples decide.
 * @param {UPlot} chart
 * @returns {[number, number]}
 */
const spanOf = ({ data: [times] }) => {
  const newest = times[times.length - 1] ?? Date.now() / 1000;
  return [Math.min(times[0] ?? newest, newest - LEAST_S), newest];
};

/**
 * @param {string[]} names
 * @param {(value: number) => string} text
 * @param {boolean} whole
 * @param {number} width
 * @returns {UPlot.Options}
 */
const options = (names, text, whole, width) => {
  const axis = { stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { range: spanOf }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [
      { ...axis, size: 24, space: 80, values: (_, ticks) => ticks.map((at) => CLOCK.format(at * 1000)) },
      { ...axis, size: 72, values: (_, ticks) => ticks.map(text), ...(whole ? { incrs: WHOLE } : {}) },
    ],
    // A sample that stands alone is a point.
    series: [{}, ...names.map((_, place) => ({ stroke: colour(COLOURS[place]), dash: DASHES[place], width: 2, points: { show: (/** @type {UPlot} */ shown) => shown.data[0].length < 2, size: 6 } }))],
  };
};
