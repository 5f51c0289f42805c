"""What can go wrong between a client and the service.

    SouvenirError
    ├── ConnectionFailed            nobody answers at the address
    │   └── TimedOut                the answer did not come in time
    ├── AnswerLost                  a tool of MCP was called, and what became of it is not known
    ├── NotImportable               a file is none that can be imported
    ├── UnreadableAnswer            what answers is not this service, or speaks another version
    └── ApiError                    the service says no; has status, code, detail, request_id
        ├── InvalidRequest          400, 422, and every other 4xx
        ├── Unauthorized            401
        ├── Forbidden               403
        ├── NotFound                404
        ├── Conflict                409
        ├── PreconditionFailed      412
        ├── Overloaded              429; may be sent again after retry_after_s
        └── ServerFailed            5xx; may be sent again after retry_after_s where that is set

No other exception leaves the client, but for `TypeError` and `ValueError` where it is called wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

START_IT = "start it with `souvenir serve` or `docker compose up`, or set SOUVENIR_URL to where it runs"


def without_password(url: str) -> str:
    """An address as it may be told: who asks and their password stay out."""
    return re.sub("//[^/@]*@", "//", url)


class SouvenirError(Exception):
    """Any failure of a call to the service."""


class ConnectionFailed(SouvenirError):
    """Nobody answers at the address.

    :param url: The service's address.
    :param reason: What the network says.
    :param advice: What to do.
    """

    def __init__(self, url: str, reason: str, advice: str = START_IT) -> None:
        self.url = without_password(url)
        super().__init__(f"No Souvenir answers at {self.url} ({reason}); {advice}.")
        self.reason = reason


class TimedOut(ConnectionFailed):
    """The answer did not come in time; what was asked for may be done all the same."""

    def __init__(self, url: str, timeout_s: float) -> None:
        super().__init__(url, f"no answer within {timeout_s:g} s", "ask again, or give it more time")
        self.timeout_s = timeout_s


class AnswerLost(SouvenirError):
    """A tool was called over MCP, and it is not known what became of it."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"The answer of {without_password(url)} was lost ({reason}): the tool may have done its work, so look "
            "before you call it again."
        )


class UnreadableAnswer(SouvenirError):
    """What answers at the address is not this service, or speaks another version of its API."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = without_password(url)
        super().__init__(
            f"What answered at {self.url} cannot be read: {reason}; is this the address of a Souvenir service?"
        )
        self.reason = reason


class NotImportable(SouvenirError):
    """A file is none that can be imported.

    :param name: The file's, or the path that was given.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} cannot be imported: {reason}.")
        self.name = name
        self.reason = reason


class ApiError(SouvenirError):
    """The service says no.

    :param status: Of the HTTP answer.
    :param code: The service's stable name of the error, such as `memory_not_found`; empty if a proxy answered.
    :param detail: The sentence of the service.
    :param request_id: By which the service's log knows the request.
    :param retry_after_s: When the service wants to be asked again, where it says so.
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
    """The request cannot be used as it is."""


class Unauthorized(ApiError):
    """The key is missing or wrong."""


class Forbidden(ApiError):
    """The key may not do that."""


class NotFound(ApiError):
    """What was named does not exist, or not for this key."""


class Conflict(ApiError):
    """It stands against what is there."""


class PreconditionFailed(ApiError):
    """It was changed since it was read."""


class Overloaded(ApiError):
    """The service has too much to do."""


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
    """What an answer of that status is raised as."""
    return _BY_STATUS.get(status, ServerFailed if status >= 500 else InvalidRequest)
