/**
 * Load a style sheet that only some views need.
 * @param {string} path Relative to the folder of the page's files.
 * @param {string} [id] The id of its element.
 * @returns {Promise<void>} Done when it applies.
 * @throws {Error} If it cannot be loaded.
 */
export function styles(path, id = path) {
  if (document.getElementById(id)) return Promise.resolve();
  const link = document.createElement("link");
  link.id = id;
  link.rel = "stylesheet";
  link.href = new URL(`../${path}`, import.meta.url).href;
  return new Promise((done, fail) => {
    link.onload = () => done();
    link.onerror = () => {
      link.remove();
      fail(new Error(`${path} could not be loaded`));
    };
    document.head.append(link);
  });
}

/** The value of a colour of the page in the current theme. @param {string} name Such as `ink`. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/**
 * Call when the system changes between light and dark.
 * @param {() => void} redraw
 * @returns {() => void} Ends it.
 */
export function onTheme(redraw) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
  return () => dark.removeEventListener("change", redraw);
}
