// What the components are written with: Preact through htm, so that nothing has to be compiled.
import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

export const html = htm.bind(h);
