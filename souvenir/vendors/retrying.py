"""When a server that failed may be asked again: as it says itself, else a little later each time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import isfinite

MAX_ATTEMPTS = 3
FIRST_DELAY_S = 0.5

_PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})


def is_passing(status: int) -> bool:
    """Whether the same request may well succeed later: 408, 409, 429 and every 5xx, Anthropic's 529 among them."""
    return status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def backoff_s(attempt: int) -> float:
    """Twice as long after each attempt, and a little different for everyone; attempts count from 1."""
    return float(FIRST_DELAY_S * 2 ** (attempt - 1) * random.uniform(0.75, 1.0))  # noqa: S311 - spreads retries


def asked_delay_s(headers: Mapping[str, str]) -> float | None:
    """What the server asks for: `retry-after-ms`, or `Retry-After` in seconds or as an HTTP date (RFC 9110, 10.2.3)."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            delay_s = float(headers[name]) * unit_s
            if isfinite(delay_s) and delay_s >= 0:
                return delay_s
    with suppress(KeyError, ValueError, TypeError, OverflowError):
        moment = parsedate_to_datetime(headers["retry-after"])
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (zoned - datetime.now(UTC)).total_seconds())
    return None
