/**
 * Starts the real service once for all test files: `python app.py` over a temporary folder, on a free port.
 *
 * It has a key, by which it is known: another program may have taken the port.
 */

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { TestProject } from "vitest/node";

export const ROOT = resolve(import.meta.dirname, "../../..");
const OWN_PYTHON = join(ROOT, ".venv/bin/python");
export const PYTHON = existsSync(OWN_PYTHON) ? OWN_PYTHON : "python3";
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

declare module "vitest" {
  export interface ProvidedContext {
    serviceUrl: string;
    /** Where its proxy expects both vendors; a test starts one there. */
    proxiedPort: number;
  }
}

export default async function start(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "souvenir-js-"));
  const port = await freePort();
  const key = randomUUID();
  const proxiedPort = await freePort();
  const vendor = `http://127.0.0.1:${proxiedPort}`;
  const vendors = { OPENAI_BASE_URL: `${vendor}/v1`, ANTHROPIC_BASE_URL: vendor };
  const settings = { DATA_DIR: folder, PORT: String(port), API_KEY: key, LOG_LEVEL: "ERROR", ...vendors };
  const env = { PATH: process.env["PATH"], HOME: folder, ...settings };
  const service = spawn(PYTHON, ["app.py"], { cwd: ROOT, env, stdio: ["ignore", "inherit", "inherit"] });
  const ended = new Promise<void>((resolved) => service.once("exit", () => resolved()));
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    service.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await ready(url, key, () => service.exitCode !== null);
  } catch (error) {
    await stop();
    throw error;
  }
  // Variables of the machine must not lead a test to another service.
  delete process.env["SOUVENIR_URL"];
  delete process.env["MEMORY_SERVER_URL"];
  process.env["SOUVENIR_API_KEY"] = key;
  project.provide("serviceUrl", url);
  project.provide("proxiedPort", proxiedPort);
  return stop;
}

async function ready(url: string, key: string, hasEnded: () => boolean): Promise<void> {
  for (const end = Date.now() + START_TIMEOUT_MS; Date.now() < end; ) {
    if (hasEnded()) throw new Error("the service of the tests did not start: run make setup");
    const answer = await fetch(`${url}/stats`, { headers: { "X-API-Key": key } }).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolved) => setTimeout(resolved, POLL_MS));
  }
  throw new Error(`the service of the tests was not ready in ${START_TIMEOUT_MS} ms`);
}

export function freePort(): Promise<number> {
  return new Promise((resolved) => {
    const listener = createServer().listen(0, "127.0.0.1", () => {
      const { port } = listener.address() as AddressInfo;
      listener.close(() => resolved(port));
    });
  });
}
