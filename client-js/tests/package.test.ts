/** The packed package in an empty project: imported, required, and type-checked. Nothing is downloaded. */

import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

const CLIENT = resolve(import.meta.dirname, "..");
const BUILD_TIMEOUT_MS = 120_000;

const run = promisify(execFile);

let project: string;

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "souvenir-js-package-"));
  await run(process.execPath, ["scripts/build.mjs"], { cwd: CLIENT });
  // The dependency comes from the installed tools.
  const packed = [".", "./node_modules/openapi-fetch", "./node_modules/openapi-typescript-helpers"];
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", project, ...packed], { cwd: CLIENT });
  const tarballs = (await readdir(project)).map((name) => `./${name}`);
  expect(tarballs).toHaveLength(3);
  await writeFile(join(project, "package.json"), '{ "private": true }');
  await run("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", ...tarballs], { cwd: project });
}, BUILD_TIMEOUT_MS);

afterAll(() => rm(project, { recursive: true, force: true }));

/** What a script of the project prints. */
async function printed(name: string, script: string): Promise<string> {
  await writeFile(join(project, name), script);
  const { stdout } = await run(process.execPath, [name], { cwd: project });
  return stdout.trim();
}

const USE = `
  const souvenir = new Souvenir({ serverUrl: ${JSON.stringify(inject("serviceUrl"))} });
  souvenir.memories.get(424242).catch((error) => console.log(error instanceof NotFound, error.code, typeof withMemory));
`;

test("it is imported by an ES module", async () => {
  const script = `import { NotFound, Souvenir, withMemory } from "souvenir-client";${USE}`;
  expect(await printed("use.mjs", script)).toBe("true memory_not_found function");
});

test("it is required by CommonJS", async () => {
  const script = `const { NotFound, Souvenir, withMemory } = require("souvenir-client");${USE}`;
  expect(await printed("use.cjs", script)).toBe("true memory_not_found function");
});

test("it contains the build and nothing else", async () => {
  const installed = await readdir(join(project, "node_modules/souvenir-client"));
  expect(installed.sort()).toEqual(["README.md", "dist", "package.json"]);
});

test("its types are those of an ES module and of CommonJS, without the AI SDK", async () => {
  const script = `
    import { Souvenir, type components } from "souvenir-client";
    export async function first(): Promise<components["schemas"]["SearchHit"] | undefined> {
      const souvenir = new Souvenir({ timeoutMs: 5000 });
      // @ts-expect-error A memory has a source.
      await souvenir.memories.add({ text: "x" });
      const found = await souvenir.memories.search({ query: "x", k: 1 });
      for await (const event of souvenir.events.stream()) console.log(event.id.toFixed());
      return found.results[0];
    }
  `;
  await writeFile(join(project, "use.mts"), script);
  await writeFile(join(project, "use.cts"), script);
  const options = ["--strict", "--noEmit", "--skipLibCheck", "--module", "nodenext", "--lib", "es2023,dom,dom.asynciterable"];
  const compiler = join(CLIENT, "node_modules/typescript/bin/tsc");
  await run(process.execPath, [compiler, ...options, "use.mts", "use.cts"], { cwd: project });
}, BUILD_TIMEOUT_MS);

test.each([
  ["import", "import * as main from './dist/esm/index.js'; import * as ai from './dist/esm/ai.js';", "--input-type=module"],
  ["require", "const [main, ai] = [require('./dist/cjs/index.js'), require('./dist/cjs/ai.js')];", "--input-type=commonjs"],
])("the part for the AI SDK shares its state with the rest, by %s", async (_, imports, type) => {
  const script = `${imports} main.flush(ai.souvenirMiddleware({ agent: "a" })).then((left) => console.log(left.waiting))`;
  const { stdout } = await run(process.execPath, [type, "--eval", script], { cwd: CLIENT });
  expect(stdout.trim()).toBe("0");
});
