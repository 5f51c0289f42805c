// Requests to the service that this page came from. The key is kept for the tab only and sent as a header.
import { key, offline, route, signedOut } from "./state.js";

/** @import { components } from "./api-types.d.ts" */
/** @typedef {components["schemas"]} Schemas */

/** An answer of the service that is no success. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string | null} requestId
   */
  constructor(status, message, requestId) {
    super(message);
    this.status = status;
    this.requestId = requestId;
  }
}

/**
 * @param {string} method
 * @param {string} path Relative to the page.
 * @param {{ body?: unknown, signal?: AbortSignal, expected?: number, version?: number }} [options]
 *     `expected` is another status whose answer is returned; with another `version` stored, the request fails with 412.
 * @returns {Promise<any>} The parsed answer.
 * @throws {ApiError} If the service refuses.
 * @throws {TypeError} If it cannot be reached.
 */
export async function call(method, path, { body, signal, expected, version } = {}) {
  /** @type {Record<string, string>} */
  const headers = { "X-Memories-Client": "page" };
  if (key.value) headers["X-API-Key"] = key.value;
  const namespace = route.value.query.get("in");
  if (namespace) headers["X-Namespace"] = namespace;
  if (version !== undefined) headers["If-Match"] = `"${version}"`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (!signal?.aborted) offline.value = true;
    throw error;
  }
  offline.value = false;
  const answer = response.status === 204 ? null : await response.json();
  if (response.ok || response.status === expected) return answer;
  if (response.status === 401) signedOut(key.value ? "The service does not accept this key." : "");
  const detail = typeof answer.detail === "string" ? answer.detail : JSON.stringify(answer.detail);
  throw new ApiError(response.status, detail, answer.request_id ?? null);
}

/** @returns {Promise<Schemas["OwnKeyResponse"]>} */
export const ownKey = () => call("GET", "api/keys/me");

/**
 * @param {Partial<Schemas["SearchRequest"]>} body
 * @param {AbortSignal} signal
 * @returns {Promise<Schemas["ExplainResponse"]>}
 */
export const explainedSearch = (body, signal) => call("POST", "search/explain", { body, signal });

/**
 * @param {number} offset
 * @param {number} limit
 * @param {string} filters Further parameters.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Schemas["MemoryPage"]>}
 */
export const memories = (offset, limit, filters, signal) =>
  call("GET", `memories?offset=${offset}&limit=${limit}&${filters}`, { signal });

/**
 * @param {number} id
 * @returns {Promise<Schemas["MemoryRecord"]>}
 */
export const memory = (id) => call("GET", `memory/${id}`);
