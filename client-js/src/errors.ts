/**
 * The errors of the client, with the names of the Python client:
 *
 *     SouvenirError
 *     ├── ConnectionFailed            no service answers at the address
 *     │   └── TimedOut                the answer did not arrive in time
 *     ├── UnreadableAnswer            the answer is not from this service, or from another version
 *     └── ApiError                    the service refused; has status, code, detail, requestId
 *         ├── InvalidRequest          400, 422, and every other 4xx
 *         ├── Unauthorized            401
 *         ├── Forbidden               403
 *         ├── NotFound                404
 *         ├── Conflict                409
 *         ├── PreconditionFailed      412
 *         ├── Overloaded              429; retry after retryAfterS
 *         └── ServerFailed            5xx; retry after retryAfterS if it is set
 *
 * The client throws nothing else, except a TypeError for wrong arguments and the reason of an aborted signal.
 */

const START_IT = "start it with `souvenir serve` or `docker compose up`, or set SOUVENIR_URL to its address";

/** Any failure of a call to the service. */
export class SouvenirError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No service answers at the address. `reason` is the error of the network. */
export class ConnectionFailed extends SouvenirError {
  constructor(
    readonly url: string,
    readonly reason: string,
    options?: ErrorOptions,
    advice = START_IT,
  ) {
    super(`No Souvenir answers at ${url} (${reason}); ${advice}.`, options);
  }
}

/** The answer did not arrive within `timeoutMs` milliseconds. The service may have processed the request. */
export class TimedOut extends ConnectionFailed {
  constructor(
    url: string,
    readonly timeoutMs: number,
  ) {
    super(url, `no answer within ${timeoutMs} ms`, undefined, "retry, or raise the timeout");
  }
}

/** The answer is not from this service, or from another version of its API. */
export class UnreadableAnswer extends SouvenirError {
  constructor(
    readonly url: string,
    readonly reason: string,
  ) {
    super(`The answer of ${url} cannot be read: ${reason}; is this the address of a Souvenir service?`);
  }
}

/** The parts of a refusal. */
export interface Refusal {
  /** HTTP status code. */
  status: number;
  /** The service's stable name of the error, such as `memory_not_found`; empty if the answer came from a proxy. */
  code: string;
  /** The error message of the service. */
  detail: string;
  /** The id of the request in the log of the service. */
  requestId?: string;
  /** Seconds to wait before a retry, if the service gives them. */
  retryAfterS?: number;
}

/** The service refused the request. */
export class ApiError extends SouvenirError {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly requestId: string | undefined;
  readonly retryAfterS: number | undefined;

  constructor(refusal: Refusal) {
    super(`${refusal.detail} (${refusal.status}${refusal.code && `, ${refusal.code}`})`);
    this.status = refusal.status;
    this.code = refusal.code;
    this.detail = refusal.detail;
    this.requestId = refusal.requestId;
    this.retryAfterS = refusal.retryAfterS;
  }
}

/** The request is invalid. */
export class InvalidRequest extends ApiError {}

/** The key is missing or wrong. */
export class Unauthorized extends ApiError {}

/** The key has no permission for the request. */
export class Forbidden extends ApiError {}

/** The resource does not exist, or the key cannot see it. */
export class NotFound extends ApiError {}

/** The request conflicts with the stored state. */
export class Conflict extends ApiError {}

/** The resource was changed since it was read. */
export class PreconditionFailed extends ApiError {}

/** The service is overloaded. */
export class Overloaded extends ApiError {}

/** The service failed. */
export class ServerFailed extends ApiError {}

const BY_STATUS = new Map<number, typeof ApiError>([
  [401, Unauthorized],
  [403, Forbidden],
  [404, NotFound],
  [409, Conflict],
  [412, PreconditionFailed],
  [429, Overloaded],
]);

/** The error of a refusal, of the class of its status. */
export function apiError(refusal: Refusal): ApiError {
  const Kind = BY_STATUS.get(refusal.status) ?? (refusal.status >= 500 ? ServerFailed : InvalidRequest);
  return new Kind(refusal);
}
