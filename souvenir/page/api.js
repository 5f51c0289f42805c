// Requests to the service that this page came from. The key is kept for the tab only and sent as a header.
import { key, keyRefused, offline, route } from "./state.js";

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

/** No answer of the service arrived. */
export class Unreachable extends Error {
  constructor() {
    super("The service cannot be reached. Nothing is saved.");
  }
}

/** @typedef {{ namespace: string | null, key: string }} Place A namespace of the addresses, and the key that reads it. */

/** What requests are about now. What goes on for longer keeps it, so that it ends where it began. @returns {Place} */
export const here = () => ({ namespace: route.value.query.get("in"), key: key.value });

/**
 * The headers of a request about a place.
 * @param {Place} at
 */
export function headersOf(at) {
  /** @type {Record<string, string>} */
  const headers = { "X-Memories-Client": "page" };
  if (at.key) headers["X-API-Key"] = at.key;
  // Browsers send headers as Latin-1: each byte of the name in UTF-8 as a character of its own.
  if (at.namespace) headers["X-Namespace"] = String.fromCharCode(...new TextEncoder().encode(at.namespace));
  return headers;
}

/**
 * @param {string} method
 * @param {string} path Relative to the page.
 * @param {{ body?: unknown, signal?: AbortSignal, expected?: number, ifMatch?: string, at?: Place, onHeaders?: (headers: Headers) => void }} [options]
 *     `expected` is another status whose answer is returned; if what is stored has another ETag than `ifMatch`, the request fails with 412.
 * @returns {Promise<any>} The parsed answer.
 * @throws {ApiError} If the service refuses, or the key of `at` is no longer that of the page.
 * @throws {Unreachable} If it cannot be reached.
 */
export async function call(method, path, { body, signal, expected, ifMatch, at = here(), onHeaders } = {}) {
  if (at.key !== key.value) throw new ApiError(401, "This was begun with another key. Nothing more is sent.", null);
  const headers = headersOf(at);
  if (ifMatch) headers["If-Match"] = ifMatch;
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
    if (signal?.aborted) throw error;
    offline.value = true;
    throw new Unreachable();
  }
  offline.value = false;
  onHeaders?.(response.headers);
  const answer = await answerOf(response);
  if (response.ok || response.status === expected) return answer;
  if (response.status === 401) keyRefused(at.key);
  throw new ApiError(response.status, sentenceOf(answer.detail), answer.request_id ?? null);
}

/**
 * Why a request was refused: a sentence, or of invalid fields one for each.
 * @param {string | { loc: (string | number)[], msg: string }[]} detail
 */
const sentenceOf = (detail) => (typeof detail === "string" ? detail : detail.map(({ loc, msg }) => `${String(loc.at(-1)).replaceAll("_", " ")}: ${msg}.`).join(" "));

/**
 * @param {Response} response
 * @throws {ApiError} If it is not JSON, as that of a proxy in between.
 */
async function answerOf(response) {
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ApiError(response.status, `The answer cannot be read (status ${response.status}). Does a proxy stand before the service?`, response.headers.get("X-Request-Id"));
  }
}

/** @returns {Promise<Schemas["OwnKeyResponse"]>} */
export const ownKey = () => call("GET", "api/keys/me");

/**
 * @param {number} offset
 * @param {number} limit
 * @param {string} filters Further parameters.
 * @param {{ signal?: AbortSignal, at?: Place }} [options]
 * @returns {Promise<Schemas["MemoryPage"]>}
 */
export const memories = (offset, limit, filters, options) =>
  call("GET", `memories?offset=${offset}&limit=${limit}&${filters}`, options);

/**
 * @param {number} id
 * @returns {Promise<Schemas["MemoryRecord"]>}
 */
export const memory = (id) => call("GET", `memory/${id}`);
