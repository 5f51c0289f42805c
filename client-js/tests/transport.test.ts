/** Retries, timeouts, signals and settings, against a scripted server. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  ConnectionFailed,
  InvalidRequest,
  Overloaded,
  ServerFailed,
  Souvenir,
  TimedOut,
  UnreadableAnswer,
} from "../src/index.js";
import { ScriptedServer } from "./support/scripted-server.js";

const OK = { body: { status: "ok" } };
const BUSY = { status: 503, body: { detail: "Starting", code: "starting" } };

let server: ScriptedServer;
let souvenir: Souvenir;

beforeEach(async () => {
  server = await new ScriptedServer().start();
  souvenir = new Souvenir({ serverUrl: server.url });
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await server.stop();
});

const keys = () => server.requests.map((request) => request.headers["idempotency-key"]);

describe("retries", () => {
  test("a read is repeated after a transient failure", async () => {
    server.replies.push(BUSY, { hangsUp: "before" }, OK);
    expect(await souvenir.health.check()).toEqual({ status: "ok" });
    expect(server.requests).toHaveLength(3);
  });

  test("a keyed call is repeated with the same Idempotency-Key", async () => {
    server.replies.push({ hangsUp: "before" }, BUSY, { body: { id: 7 } });
    await souvenir.memories.add({ text: "Once", source: "a" });
    expect(new Set(keys()).size).toBe(1);
    expect(keys()).toHaveLength(3);
    expect(keys()[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(server.requests[2]!.body).toEqual({ text: "Once", source: "a" });
  });

  test("two calls have two keys, and the key of the caller is sent", async () => {
    server.replies.push({ body: {} }, { body: {} }, { body: {} });
    await souvenir.memories.add({ text: "One", source: "a" });
    await souvenir.memories.add({ text: "Two", source: "a" });
    await souvenir.memories.add({ text: "Three", source: "a", idempotency_key: "mine" });
    expect(new Set(keys()).size).toBe(3);
    expect(keys()[2]).toBe("mine");
  });

  test.each([{ hangsUp: "before" as const }, BUSY])("a call without a key is not repeated after %o", async (reply) => {
    server.replies.push(reply);
    await expect(souvenir.memories.deleteBatch({ ids: [1] })).rejects.toThrow();
    expect(server.requests).toHaveLength(1);
    expect(keys()).toEqual([undefined]);
  });

  test("a refusal due to overload had no effect: it is repeated after the delay that the service asks for", async () => {
    server.replies.push({ status: 429, headers: { "Retry-After": "1" }, body: { detail: "Busy", code: "overloaded" } }, OK);
    const begin = performance.now();
    await souvenir.memories.deleteBatch({ ids: [1] });
    expect(performance.now() - begin).toBeGreaterThan(990);
  });

  test("a longer delay than 30 s is left to the caller", async () => {
    server.replies.push({ status: 429, headers: { "Retry-After": "31" }, body: { detail: "Busy", code: "overloaded" } });
    const error = await souvenir.health.check().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(Overloaded);
    expect(error).toMatchObject({ retryAfterS: 31, code: "overloaded", detail: "Busy" });
  });

  test("the last failure is thrown", async () => {
    souvenir = new Souvenir({ serverUrl: server.url, maxRetries: 1 });
    server.replies.push(BUSY, { status: 503, body: { detail: "Still starting", code: "starting" } });
    await expect(souvenir.health.check()).rejects.toThrow(ServerFailed);
    expect(server.requests).toHaveLength(2);
  });

  test("an answer that can never be given is not asked for again", async () => {
    server.replies.push({ status: 503, body: { detail: "No model", code: "extraction_not_configured" } });
    await expect(souvenir.extraction.status()).rejects.toThrow("No model");
    expect(server.requests).toHaveLength(1);
  });

  test("where nothing listens, every call is repeated, then fails", async () => {
    const { url } = server;
    await server.stop();
    const closed = new Souvenir({ serverUrl: url, maxRetries: 1 });
    const begin = performance.now();
    await expect(closed.memories.deleteBatch({ ids: [1] })).rejects.toThrow(ConnectionFailed);
    expect(performance.now() - begin).toBeGreaterThan(120);
    await expect(closed.health.check()).rejects.toThrow(/No Souvenir answers at http.*ECONNREFUSED.*SOUVENIR_URL/);
    server = await new ScriptedServer().start();
  });
});

describe("limits", () => {
  test("a call that is not answered in time fails", async () => {
    server.replies.push({ isSilent: true });
    const error = await souvenir.memories.deleteBatch({ ids: [1] }, { timeoutMs: 50 }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(TimedOut);
    expect(error).toMatchObject({ timeoutMs: 50 });
  });

  test("a stream that pauses too long fails, however long it lasts", async () => {
    const parts = async function* () {
      for (const id of [1, 2, 3, 4, 5]) {
        yield `id: ${id}\nevent: memory.added\ndata: {"id": ${id}}\n\n`;
        await new Promise((resolved) => setTimeout(resolved, id === 5 ? 10_000 : 300));
      }
    };
    server.replies.push({ headers: { "Content-Type": "text/event-stream" }, parts: parts() });
    const seen: number[] = [];
    const read = async () => {
      for await (const event of souvenir.events.stream({}, { timeoutMs: 1_000 })) seen.push(event.id);
    };
    await expect(read()).rejects.toThrow(TimedOut);
    expect(seen).toEqual([1, 2, 3, 4, 5]);
  });

  test("the caller's signal ends a call and the pause before a retry", async () => {
    const reason = new Error("changed my mind");
    server.replies.push({ isSilent: true });
    await expect(souvenir.health.check({ signal: abortedAt(1, reason) })).rejects.toBe(reason);
    server.replies.push({ ...BUSY, headers: { "Retry-After": "20" } });
    await expect(souvenir.health.check({ signal: abortedAt(2, reason) })).rejects.toBe(reason);
    await expect(souvenir.health.check({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(server.requests).toHaveLength(2);
  });

  test("leaving a stream closes its connection", async () => {
    const parts = async function* () {
      yield 'id: 1\nevent: memory.added\ndata: {"id": 1}\n\n';
      await server.left;
    };
    server.replies.push({ headers: { "Content-Type": "text/event-stream" }, parts: parts() });
    for await (const event of souvenir.events.stream()) {
      expect(event).toEqual({ id: 1, type: "memory.added", data: { id: 1 } });
      break;
    }
    await server.left;
  });
});

describe("wait", () => {
  const running = { body: { id: "j1", status: "running" } };

  test("a job is asked for until it has finished", async () => {
    server.replies.push(running, running, { body: { id: "j1", status: "failed" } });
    expect((await souvenir.jobs.wait("j1")).status).toBe("failed");
    expect(server.requests.map((request) => request.path)).toEqual(Array(3).fill("/jobs/j1"));
  });

  test("a job that takes longer is a timeout", async () => {
    server.replies.push(running, running);
    await expect(souvenir.extraction.wait("j1", { timeoutMs: 250 })).rejects.toThrow(TimedOut);
  });

  test("a service that does not answer extends no wait, and the caller's signal ends it", async () => {
    const patient = new Souvenir({ serverUrl: server.url, timeoutMs: 10_000 });
    server.replies.push({ isSilent: true }, { isSilent: true });
    await expect(patient.jobs.wait("j1", { timeoutMs: 100 })).rejects.toThrow("no answer within 100 ms");
    const reason = new Error("changed my mind");
    await expect(patient.jobs.wait("j1", { signal: abortedAt(server.requests.length + 1, reason) })).rejects.toBe(reason);
    server.replies.push(running, { body: { id: "j1", status: "completed" } });
    expect((await patient.jobs.wait("j1", { timeoutMs: Infinity })).status).toBe("completed");
  });
});

describe("answers of others", () => {
  test.each([
    [{ body: "<html>" }, UnreadableAnswer],
    [{ status: 404, body: "<html>" }, UnreadableAnswer],
    [{ status: 307, headers: { Location: "http://127.0.0.1:9/" } }, UnreadableAnswer],
    [{ status: 403, body: "denied by a proxy" }, Error],
    [{ status: 418, body: { detail: { message: "A teapot" } } }, InvalidRequest],
  ])("%o is %o", async (reply, kind) => {
    server.replies.push(reply);
    await expect(souvenir.health.check()).rejects.toThrow(kind);
    expect(server.requests).toHaveLength(1);
  });
});

describe("settings", () => {
  test("address and key come from the environment", async () => {
    vi.stubEnv("SOUVENIR_URL", `${server.url}/`);
    vi.stubEnv("SOUVENIR_API_KEY", "mem_secret\n");
    server.replies.push(OK, OK);
    await new Souvenir().inNamespace("team-a").health.check();
    expect(server.requests[0]).toMatchObject({
      path: "/health",
      headers: { "x-api-key": "mem_secret", "x-namespace": "team-a" },
    });
    await new Souvenir({ apiKey: "other" }).health.check();
    expect(server.requests[1]!.headers["x-api-key"]).toBe("other");
  });

  test("the older name of the variable is read, and the default is the loopback address", () => {
    expect(new Souvenir().serverUrl).toBe("http://127.0.0.1:8900");
    vi.stubEnv("MEMORY_SERVER_URL", "http://127.0.0.1:9");
    expect(new Souvenir().serverUrl).toBe("http://127.0.0.1:9");
  });

  test.each([
    { serverUrl: "127.0.0.1:8900" },
    { serverUrl: "ftp://127.0.0.1" },
    { serverUrl: "http://user:password@127.0.0.1" },
    { apiKey: "a\u0000b" },
    { namespace: "a\nb" },
    { timeoutMs: 0 },
    { maxRetries: -1 },
  ])("%o is refused", (options) => {
    expect(() => new Souvenir(options)).toThrow(TypeError);
  });
});

/** A signal that aborts a moment after the server has got so many requests. */
function abortedAt(requests: number, reason: Error): AbortSignal {
  const controller = new AbortController();
  const timer = setInterval(() => {
    if (server.requests.length < requests) return;
    clearInterval(timer);
    setTimeout(() => controller.abort(reason), 50);
  }, 5);
  return controller.signal;
}
