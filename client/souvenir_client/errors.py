"""The exceptions of the client.

    SouvenirError
    ├── ConnectionFailed            no service answers at the address
    │   └── TimedOut                the answer did not arrive in time
    ├── AnswerLost                  the answer to an MCP tool call was lost, its outcome is unknown
    ├── NotImportable               a file cannot be imported
    ├── UnreadableAnswer            the answer is not from this service, or from another version
    └── ApiError                    the service refused; has status, code, detail, request_id
        ├── InvalidRequest          400, 422, and every other 4xx
        ├── Unauthorized            401
        ├── Forbidden               403
        ├── NotFound                404
        ├── Conflict                409
        ├── PreconditionFailed      412
        ├── Overloaded              429; retry after retry_after_s
        └── ServerFailed            5xx; retry after retry_after_s if it is set

The client raises nothing else, except `TypeError` and `ValueError` for wrong arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

START_IT = "start it with `souvenir serve` or `docker compose up`, or set SOUVENIR_URL to its address"


def without_password(url: str) -> str:
    """The URL without user name and password."""
    return re.sub("//[^/@]*@", "//", url)


class SouvenirError(Exception):
    """Any failure of a call to the service."""


class ConnectionFailed(SouvenirError):
    """No service answers at the address.

    :param url: The service's address.
    :param reason: The error of the network.
    :param advice: The remedy.
    """

    def __init__(self, url: str, reason: str, advice: str = START_IT) -> None:
        self.url = without_password(url)
        super().__init__(f"No Souvenir answers at {self.url} ({reason}); {advice}.")
        self.reason = reason


class TimedOut(ConnectionFailed):
    """The answer did not arrive in time. The service may have processed the request."""

    def __init__(self, url: str, timeout_s: float) -> None:
        super().__init__(url, f"no answer within {timeout_s:g} s", "retry, or raise the timeout")
        self.timeout_s = timeout_s


class AnswerLost(SouvenirError):
    """The answer to an MCP tool call was lost: its outcome is unknown."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"The answer of {without_password(url)} was lost ({reason}): the tool may have run, so check "
            "its effect before you call it again."
        )


class UnreadableAnswer(SouvenirError):
    """The answer is not from this service, or from another version of its API."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = without_password(url)
        super().__init__(
            f"The answer of {self.url} cannot be read: {reason}; is this the address of a Souvenir service?"
        )
        self.reason = reason


class NotImportable(SouvenirError):
    """A file cannot be imported.

    :param name: Name of the file, or the given path.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} cannot be imported: {reason}.")
        self.name = name
        self.reason = reason


class ApiError(SouvenirError):
    """The service refused the request.

    :param status: HTTP status code.
    :param code: The service's stable name of the error, such as `memory_not_found`; empty if the answer came from a
        proxy.
    :param detail: The error message of the service.
    :param request_id: The id of the request in the log of the service.
    :param retry_after_s: Seconds to wait before a retry, if the service gives them.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{detail} ({status}{f', {code}' if code else ''})")
        self.status = status
        self.code = code
        self.detail = detail
        self.request_id = request_id
        self.retry_after_s = retry_after_s


class InvalidRequest(ApiError):
    """The request is invalid."""


class Unauthorized(ApiError):
    """The key is missing or wrong."""


class Forbidden(ApiError):
    """The key has no permission for the request."""


class NotFound(ApiError):
    """The resource does not exist, or the key cannot see it."""


class Conflict(ApiError):
    """The request conflicts with the stored state."""


class PreconditionFailed(ApiError):
    """The resource was changed since it was read."""


class Overloaded(ApiError):
    """The service is overloaded."""


class ServerFailed(ApiError):
    """The service failed."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    429: Overloaded,
}


def error_class(status: int) -> type[ApiError]:
    """The exception for a status code."""
    return _BY_STATUS.get(status, ServerFailed if status >= 500 else InvalidRequest)
