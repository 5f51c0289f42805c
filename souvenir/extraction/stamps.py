"""When a turn was said, as transcripts write it. Pure functions.

A stamp without a zone is UTC. Where day and month could be either, nothing is read: a wrong date is worse than none.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from dateutil.parser import parse as parse_date

_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DATE = (
    r"(?:[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{4}|[0-9]{2})"
    rf"|[0-9]{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\.?,? [0-9]{{4}}"
    rf"|{_MONTH}\.? [0-9]{{1,2}}(?:st|nd|rd|th)?,? [0-9]{{4}})"
)
_CLOCK = (
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,6})?)?(?: ?[ap]\.?m\.?)?(?:Z| ?[+-][0-9]{2}:?[0-9]{2}| UTC| GMT)?"
)
DATED_STAMP = rf"(?:{_DATE}(?:(?:T|, ?| at | )(?:{_CLOCK}))?|(?:{_CLOCK})(?: on |, ?| ){_DATE})(?![\w:])"
"""A regex of a date, with or without a time of day; for `re.IGNORECASE`."""

STAMP = rf"(?:{DATED_STAMP}|{_CLOCK}(?![\w:]))"
"""A regex of a date, a time of day, or both."""

_DATED = re.compile(_DATE, re.IGNORECASE)
_EITHER = re.compile(r"(?<![0-9])([0-9]{1,2})[-/.]([0-9]{1,2})[-/.][0-9]{2,4}(?![0-9])")
_MAX_MONTH = 12
_LATEST_EPOCH_S = 32_503_680_000
"""The year 3000; larger numbers count milliseconds."""


def moment_of(stamp: str, day: date | None) -> datetime | None:
    """The time that a stamp means; None if it is none, or cannot be known.

    :param day: Which day a time of day is of.
    """
    written = _DATED.search(stamp)
    if written is None and day is None:
        return None
    day_first = False
    if either := _EITHER.search(stamp):
        first, second = int(either[1]), int(either[2])
        if first <= _MAX_MONTH and second <= _MAX_MONTH and first != second:
            return None
        day_first = first > _MAX_MONTH
    midnight = datetime.combine(day or date(2000, 1, 1), datetime.min.time())
    try:
        read: datetime = parse_date(
            stamp.replace(" on ", " ").replace(" of ", " "), default=midnight, dayfirst=day_first
        )
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def moment_of_value(value: object) -> datetime | None:
    """The time that a field of a message means: text, or seconds or milliseconds since 1970."""
    if isinstance(value, str):
        return moment_of(value, None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = value / 1000 if abs(value) > _LATEST_EPOCH_S else value
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return None
