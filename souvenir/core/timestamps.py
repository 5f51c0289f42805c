"""Times as they are stored and compared: microseconds since 1970 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(time: datetime) -> int:
    return (time - EPOCH) // _MICROSECOND


EARLIEST_US = to_us(datetime.min.replace(tzinfo=UTC))
LATEST_US = to_us(datetime.max.replace(tzinfo=UTC))
"""The times that `from_us` can return."""


def from_us(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def utc_now() -> datetime:
    return datetime.now(UTC)
