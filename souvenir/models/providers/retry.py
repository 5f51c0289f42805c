"""Failed requests to model providers: which may pass, and when to ask again."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import count
from math import isfinite
from threading import Event
from typing import TypeVar

from souvenir.core.errors import ServiceClosing, SouvenirError

Answer = TypeVar("Answer")

MAX_ATTEMPTS = 3
FIRST_DELAY_S = 0.5

_PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})


@dataclass(eq=False)
class ProviderFailure(Exception):
    """A request without a successful answer.

    :param status: The HTTP status; 0 if the server did not answer.
    :param words: The body in lower case, for comparison only.
    """

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    words: str = field(default="", repr=False)


class AnswerTooLate(Exception):
    """The answer did not arrive in time."""


class AnswerTooLarge(Exception):
    """The answer has more bytes than allowed."""


def retrying(
    ask: Callable[[], Answer | ProviderFailure],
    error_of: Callable[[ProviderFailure], tuple[SouvenirError, bool]],
    *,
    left_s: Callable[[], float],
    closing: Event,
) -> Answer:
    """The answer of up to MAX_ATTEMPTS requests, with exponential back-off or the delay that the server asks for.

    :param ask: One request. A failure is returned, not raised, so that no error chains what the server said.
    :param error_of: The error of a failure, and whether the same request may succeed later.
    :param left_s: Seconds until the deadline; a delay beyond it is not begun.
    :raises SouvenirError: The error of the last failure. :raises ServiceClosing: If `closing` is set meanwhile.
    """
    for attempt in count(1):
        answer = ask()
        if not isinstance(answer, ProviderFailure):
            return answer
        error, may_pass = error_of(answer)
        asked_s = asked_delay_s(answer.headers)
        delay_s = backoff_s(attempt) if asked_s is None else asked_s
        if not may_pass or attempt == MAX_ATTEMPTS or delay_s >= left_s():
            raise error
        if closing.wait(delay_s):
            raise ServiceClosing
    raise AssertionError("count() does not end")


def is_passing(status: int) -> bool:
    """Whether the same request may succeed later: no answer (0), 408, 409, 429 and every 5xx, Anthropic's 529 too."""
    return status == 0 or status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def backoff_s(attempt: int) -> float:
    """Exponential back-off with jitter; attempts count from 1."""
    return float(FIRST_DELAY_S * 2 ** (attempt - 1) * random.uniform(0.75, 1.0))  # noqa: S311 - spreads retries


def asked_delay_s(headers: Mapping[str, str]) -> float | None:
    """The delay a server asks for: `retry-after-ms`, or `Retry-After` in seconds or as a date (RFC 9110, 10.2.3)."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            delay_s = float(headers[name]) * unit_s
            if isfinite(delay_s) and delay_s >= 0:
                return delay_s
    with suppress(KeyError, ValueError, TypeError, OverflowError):
        date = parsedate_to_datetime(headers["retry-after"])
        zoned = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, (zoned - datetime.now(UTC)).total_seconds())
    return None
