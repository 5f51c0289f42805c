/** The generated files are current, and the client has every operation of the API. */

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { Souvenir } from "../src/index.js";

const read = async (path: string) => JSON.parse(await readFile(new URL(path, import.meta.url), "utf8"));
const camel = (name: string) => name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

test("the generated files are those of docs/openapi.json", async () => {
  const folder = new URL("..", import.meta.url);
  await promisify(execFile)("node", ["scripts/generate.mjs", "--check"], { cwd: folder });
}, 60_000);

test("every operation of the API is a method of the client", async () => {
  const { paths } = await read("../../docs/openapi.json");
  const operations = Object.values<object>(paths).flatMap((methods) => Object.values(methods));
  const souvenir = new Souvenir() as unknown as Record<string, Record<string, unknown>>;
  const names = operations.map((operation) => operation["x-sdk-name"].split(".").map(camel));
  expect(names.length).toBeGreaterThan(150);
  for (const [group, verb] of names) expect(souvenir[group!]![verb!], `${group}.${verb}`).toBeTypeOf("function");
  expect(new Set(Object.keys(souvenir))).toEqual(new Set(names.map(([group]) => group)));
});

test("the lock names no registry, and every package has a hash", async () => {
  const { packages } = await read("../package-lock.json");
  const { "": own, ...others } = packages as Record<string, { resolved?: string; integrity?: string }>;
  expect(own).toBeDefined();
  for (const [name, { resolved, integrity }] of Object.entries(others)) {
    expect(resolved, name).toBeUndefined();
    expect(integrity, name).toMatch(/^sha512-/);
  }
});

test("openapi-fetch is the one dependency", async () => {
  const { dependencies, peerDependenciesMeta } = await read("../package.json");
  expect(Object.keys(dependencies)).toEqual(["openapi-fetch"]);
  expect(peerDependenciesMeta).toEqual({ ai: { optional: true } });
});
