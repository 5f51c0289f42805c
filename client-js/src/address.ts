/** The address of the service, with the key and the namespace of the calls. */

import { LONGEST_DELAY_MS } from "./time.js";

export const DEFAULT_URL = "http://127.0.0.1:8900";
const URL_VARIABLES = ["SOUVENIR_URL", "MEMORY_SERVER_URL"];
const KEY_VARIABLE = "SOUVENIR_API_KEY";

export interface Address {
  /** Without a slash at its end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** Undefined for the namespace of the key. */
  readonly namespace: string | undefined;
  readonly timeoutMs: number;
  readonly maxRetries: number;
}

export interface SouvenirOptions {
  /** Default: SOUVENIR_URL or MEMORY_SERVER_URL of the environment, then http://127.0.0.1:8900. */
  serverUrl?: string;
  /** Default: SOUVENIR_API_KEY of the environment; "" for no key. */
  apiKey?: string;
  /** Namespace of the calls that name no agent. Default: the namespace of the key, then `default`. */
  namespace?: string;
  /** Limit of one attempt of a call, in milliseconds, and of each wait for the next part of a stream (30,000). */
  timeoutMs?: number;
  /** How often a call is repeated after a transient failure, if it is safe to repeat (2). */
  maxRetries?: number;
}

/**
 * Use the environment or the default for missing values.
 *
 * @throws TypeError If an option is invalid. The message never contains the key.
 */
export function addressOf(options: SouvenirOptions): Address {
  const timeoutMs = options.timeoutMs ?? 30_000;
  const maxRetries = options.maxRetries ?? 2;
  if (!(timeoutMs > 0 && timeoutMs <= LONGEST_DELAY_MS) || !(maxRetries >= 0)) {
    throw new TypeError("timeoutMs must be above 0 and below 25 days, and maxRetries not below 0");
  }
  const named = options.serverUrl || URL_VARIABLES.map(environment).find(Boolean) || DEFAULT_URL;
  // A key read from a file often ends with a line break.
  const apiKey = (options.apiKey ?? environment(KEY_VARIABLE) ?? "").trim();
  if (!isPrintable(apiKey)) {
    throw new TypeError(`the API key contains characters that no key has: check ${KEY_VARIABLE}`);
  }
  const namespace = checked(options.namespace);
  return { url: serviceUrl(named.trim()), apiKey: apiKey || undefined, namespace, timeoutMs, maxRetries };
}

function checked(namespace: string | undefined): string | undefined {
  if (namespace !== undefined && !isPrintable(namespace)) {
    throw new TypeError(`${JSON.stringify(namespace)} is not a namespace: use printable characters only`);
  }
  return namespace;
}

export function isPrintable(text: string): boolean {
  return !/[\p{C}\p{Zl}\p{Zp}]/u.test(text);
}

function serviceUrl(named: string): string {
  const url = URL.canParse(named) ? new URL(named) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || !url.hostname) {
    throw new TypeError(`${JSON.stringify(named)} is not an HTTP address: use one such as ${DEFAULT_URL}`);
  }
  if (url.username || url.password) {
    throw new TypeError("the address contains a user name or password, which fetch does not send: leave them out");
  }
  return named.replace(/\/+$/, "");
}

/** A variable of the environment; undefined in browsers, and where it may not be read. */
function environment(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name];
  } catch {
    return undefined;
  }
}
