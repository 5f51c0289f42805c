/** Requests and answers of the service: their types, without I/O. */

import type { operations } from "./generated/api.js";
import { apiError, type ApiError } from "./errors.js";

type Flat<T> = { [Name in keyof T]: T[Name] };
type Known<T> = [NonNullable<T>] extends [never] ? unknown : NonNullable<T>;
type Parameters<Id extends keyof operations> = operations[Id]["parameters"];
type Query<Id extends keyof operations> = Parameters<Id> extends { query?: infer Found } ? Known<Found> : unknown;
type Path<Id extends keyof operations> = Parameters<Id> extends { path: infer Found } ? Found : unknown;
type Header<Id extends keyof operations> = Parameters<Id> extends { header?: infer Found } ? Known<Found> : unknown;
type Body<Id extends keyof operations> = operations[Id] extends { requestBody?: infer Found }
  ? NonNullable<Found> extends { content: { "application/json": infer Sent } }
    ? Omit<NonNullable<Sent>, keyof Path<Id>>
    : unknown
  : unknown;
type Json<Answer> = Answer extends { content: { "application/json": infer Value } } ? Value : never;

/** The arguments of an operation other than those of its path: query, body and headers, by their names on the wire. */
export type Input<Id extends keyof operations> = Flat<
  Query<Id> &
    Body<Id> &
    ("Idempotency-Key" extends keyof Header<Id> ? { idempotency_key?: string } : unknown) &
    ("If-Match" extends keyof Header<Id> ? { if_match?: string } : unknown)
>;

type Responses<Id extends keyof operations> = operations[Id]["responses"];

/** The answer of an operation; an array has the values of the headers too. */
export type Output<Id extends keyof operations> = Listed<
  { [Status in keyof Responses<Id>]: Json<Responses<Id>[Status]> }[keyof Responses<Id>]
>;

type Listed<Value> = Value extends readonly (infer Item)[] ? Listing<Item> : Value;

/** The array of an answer. */
export type Listing<Item> = Item[] & {
  readonly headers: Headers;
  /** The number of items on all pages, if the service gives it. */
  readonly total: number | undefined;
};

/** An event of the feed, see docs/events.md. */
export interface StreamEvent {
  id: number;
  type: string;
  data: Record<string, unknown>;
}

export interface CallOptions {
  /** Aborts the call: its promise is rejected with the reason of the signal. */
  signal?: AbortSignal;
  /** Overrides the timeout of the client, in milliseconds. */
  timeoutMs?: number;
}

/** How a call may be repeated when its outcome is unknown; `keyed`: with an Idempotency-Key. */
export type Repeat = "safe" | "keyed" | "never";

/** One request. */
export interface Call {
  method: string;
  path: string;
  /** The values of the parameters of the path. */
  names?: Record<string, string | number>;
  /** The last parameter of the path may contain slashes. */
  endsInPath?: boolean;
  input?: object;
  /** The names in `input` that belong to the query, and the headers; all others belong to the body. */
  query?: readonly string[];
  headers?: readonly string[];
  hasBody?: boolean;
  /** Sent unchanged, instead of a body. */
  content?: string | Uint8Array;
  repeat: Repeat;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;
/** The longest Retry-After that is respected. */
const LONGEST_WISH_S = 30;

/** Status codes that a proxy does not generate: without a body of the service, another program answered. */
export const NOT_FROM_PROXIES = new Set([400, 404, 405, 409, 422, 501]);

/**
 * The path of a call, with its parameters.
 *
 * @throws TypeError If a value would change the path: servers decode an encoded slash, and clients resolve dots.
 */
export function pathOf(call: Call): string {
  return call.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(call.names?.[name]);
    const isLast = call.path.endsWith(`{${name}}`);
    return (call.endsInPath && isLast ? value.split("/") : [value]).map(segment).join("/");
  });
}

function segment(text: string): string {
  if (["", ".", ".."].includes(text) || text.includes("/")) {
    throw new TypeError(`${JSON.stringify(text)} is not a valid name: it must not be empty, \`.\` or \`..\`, or contain /`);
  }
  return encodeURIComponent(text);
}

/** The value of a header: its UTF-8 bytes as characters, because names of namespaces may be in any script. */
export function headerValue(value: unknown): string {
  return String.fromCharCode(...new TextEncoder().encode(String(value)));
}

/** The milliseconds to wait before a retry; undefined if there must be none. `attempt` is the number of earlier retries. */
export function pauseBeforeRepeat(call: Call, failure: Failure, attempt: number): number | undefined {
  const { refusal } = failure;
  const hadNoEffect = failure.isUnsent || refusal?.status === 429;
  const mayHaveFailed =
    refusal === undefined || ([502, 503, 504].includes(refusal.status) && refusal.code !== "extraction_not_configured");
  if (!hadNoEffect && !(mayHaveFailed && call.repeat !== "never")) return undefined;
  const wishedS = refusal?.retryAfterS ?? 0;
  if (wishedS > LONGEST_WISH_S) return undefined;
  const jitter = 0.5 + Math.random() / 2;
  return Math.max(wishedS * 1000, Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt) * jitter);
}

/** A failed attempt: the refusal of the service, or an error of the network. */
export interface Failure {
  refusal?: ApiError;
  /** The request never reached the service. */
  isUnsent: boolean;
}

/** The error of a refused request. `body` is its JSON, undefined if it has none. */
export function refusalOf(response: Response, body: unknown): ApiError {
  const said = isRecord(body) ? body : {};
  const requestId = textOf(said["request_id"]) || response.headers.get("x-request-id") || undefined;
  const retryAfterS = secondsOf(response.headers.get("retry-after"));
  return apiError({
    status: response.status,
    code: textOf(said["code"]),
    detail: sentenceOf(said["detail"], response),
    ...(requestId === undefined ? {} : { requestId }),
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  });
}

/** The service's message; invalid fields are joined to one sentence. */
function sentenceOf(detail: unknown, response: Response): string {
  if (typeof detail === "string" && detail) return detail;
  if (Array.isArray(detail)) {
    return detail.filter(isRecord).map((one) => `${[one["loc"]].flat().join(".")}: ${one["msg"]}`).join("; ");
  }
  if (isRecord(detail)) {
    return textOf(detail["message"]) || textOf(detail["detail"]) || textOf(detail["error"]) || JSON.stringify(detail);
  }
  return `The answer was ${response.status} ${response.statusText}`.trimEnd();
}

/** The seconds of the header; undefined for a date, which this service does not send, and for invalid values. */
function secondsOf(header: string | null): number | undefined {
  return header !== null && /^\d{1,9}(\.\d+)?$/.test(header) ? Number(header) : undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
