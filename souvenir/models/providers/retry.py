"""Retry of failed requests to model providers: transient errors and back-off."""

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

_TRANSIENT = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})


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
    """Return the answer of up to MAX_ATTEMPTS requests, with exponential back-off or the server's delay.

    :param ask: Sends one request. A failure is returned, not raised, so that no error chains the server's message.
    :param error_of: Returns the error of a failure, and True if the same request may succeed later.
    :param left_s: Returns the seconds until the deadline; a longer delay is not begun.
    :raises SouvenirError: The error of the last failure. :raises ServiceClosing: If `closing` is set in the meantime.
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


def is_transient(status: int) -> bool:
    """Return True for a transient error: no answer (0), 408, 409, 429 and every 5xx, including Anthropic's 529."""
    return status == 0 or status in _TRANSIENT or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def backoff_s(attempt: int) -> float:
    """Return the exponential back-off with jitter; attempts count from 1."""
    return float(FIRST_DELAY_S * 2 ** (attempt - 1) * random.uniform(0.75, 1.0))  # noqa: S311 - spreads retries


def asked_delay_s(headers: Mapping[str, str]) -> float | None:
    """Return the delay in `retry-after-ms`, or in `Retry-After` as seconds or a date (RFC 9110, 10.2.3)."""
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
