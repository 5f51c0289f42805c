"""The times that a question names, as phrases with their days: "two weeks before August 11", "between March and May".

English, dates as they are written, and ISO 8601. Days are whole and in UTC, weeks begin on Monday, and a year that is
not written stays open. Not read: seasons (they differ between north and south), what names no period ("recently", "the
other day"), and what counts from an event ("two days before the wedding"). Of a day that does not exist (30 February)
the month is read. What a time does to a search is decided in `time_intent`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from souvenir.search.time_dates import (
    COUNT,
    DAY,
    DAY_WORDS,
    MONTHS,
    READERS,
    UNITS,
    WEEKDAYS,
    Days,
    Period,
    Phrase,
    between,
    count_of,
    latest,
    steps,
    weekday_from,
    weekend_from,
)

MAX_READ_CHARS = 2_000
"""Read of a question; what follows is a text that was pasted into it."""

EARLIEST, LATEST = date(1800, 1, 1), date(2200, 1, 1)
"""Days outside of these are nobody's memory: "5,000 years ago" is not read."""

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Leaves every character in its place, which `str.lower` does not."""

_WORD = re.compile(r"[a-z]+")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_TRIGGERS = frozenset(("weekend", "quarter", *UNITS, *(unit + "s" for unit in UNITS)))
_TRIGGERS |= {*MONTHS, *WEEKDAYS, *(words.split()[-1] for words in DAY_WORDS)}
"""A time without a year has one of these words. Most questions have none, and are done."""

_LEFT_CHARS = 60
_SHIFT = re.compile(
    rf"\b(?:(?P<count>{COUNT})|the|last|the last|the previous|the following) "
    rf"(?P<unit>{'|'.join(UNITS)}|weekend|{'|'.join(WEEKDAYS)})s? (?P<way>before|prior to|preceding|after|following) $"
)
_OPEN = re.compile(r"\b(?P<way>since|after|before|prior to|until|till|up to) (?:(?:the|early|mid|late|end of) ?)*$")
_PAIR = re.compile(r"\b(?:between|from) (?:the )?$")
_GAP = re.compile(r" ?[-–] ?| (?P<word>and|to|until|till|through) (?:the )?")


def readable(text: str) -> str:
    """What is read of a question: its beginning, with single spaces."""
    return " ".join(text[:MAX_READ_CHARS].split())


def find_phrases(text: str, now: datetime) -> list[Phrase]:
    """The times that a readable question names, in its order; those that count from `now` only where none is written.

    "What did she finish last Friday, on 23 January 2022?" counts from that January, not from now.
    """
    lowered = text.translate(_LOWER)
    if _TRIGGERS.isdisjoint(_WORD.findall(lowered)) and _YEAR.search(lowered) is None:
        return []
    now = now.astimezone(UTC)
    found = [one for one in _linked(lowered, _times(lowered, now), now.date()) if _can_be_meant(one)]
    written = any(phrase.written for phrase in found)
    return [phrase for phrase in found if phrase.written or not written]


def _can_be_meant(phrase: Phrase) -> bool:
    days = (period for period in phrase.periods + phrase.near if isinstance(period, Days))
    ends = {end for period in days for end in (period.first, period.end)} - {date.min, date.max}
    return all(EARLIEST <= end <= LATEST for end in ends)


def _times(text: str, now: datetime) -> list[Phrase]:
    """Every single time, without what stands before it."""
    taken: list[Phrase] = []
    for pattern, read in READERS:
        for match in pattern.finditer(text):
            start, end = match.span("date")
            if any(start < other.end and other.start < end for other in taken):
                continue
            try:
                phrase = read(match, now)
            except (ValueError, OverflowError):  # there is no such day
                continue
            if phrase is not None:
                taken.append(phrase)
    return sorted(taken, key=lambda phrase: phrase.start)


def _linked(text: str, times: Sequence[Phrase], today: date) -> list[Phrase]:
    """Pairs become one phrase, and what stands before a time becomes part of it."""
    found: list[Phrase] = []
    position = 0
    while position < len(times):
        time, later = times[position], times[position + 1 : position + 2]
        left = text[max(0, time.start - _LEFT_CHARS) : time.start]
        position += 1
        try:
            if later and (pair := _pair(text, left, time, later[0], today)):
                time, position = pair, position + 1
            elif shift := _SHIFT.search(left):
                time = _shifted(time, shift, today)
            elif beside := _OPEN.search(left):
                time = _open(time, beside, today)
        except (ValueError, OverflowError):  # it leaves the calendar
            continue
        while found and found[-1].end > time.start:
            found.pop()
        found.append(time)
    return found


def _pair(text: str, left: str, first: Phrase, last: Phrase, today: date) -> Phrase | None:
    gap = _GAP.fullmatch(text, first.end, last.start)
    opening = _PAIR.search(left)
    if gap is None or (opening is None and gap["word"] == "and"):
        return None
    return Phrase(
        start=first.start - (len(left) - opening.start() if opening else 0),
        end=last.end,
        periods=(between(first.periods[0], last.periods[-1], today),),
        near=first.near + last.near,
        written=first.written or last.written,
    )


def _shifted(time: Phrase, shift: re.Match[str], today: date) -> Phrase:
    anchor, unit = latest(time.periods[0], today), shift["unit"]
    days = _counted(anchor, unit, shift["count"], back=shift["way"] not in ("after", "following"))
    single: tuple[Period, ...] = (days,) if days.end - days.first == DAY else ()
    return replace(time, start=_start(time, shift), periods=(days,), near=time.near + single)


def _counted(anchor: Days, unit: str, count: str | None, *, back: bool) -> Days:
    """A day for "two weeks before" a day; for "the week before" the seven days up to it."""
    if unit in WEEKDAYS:
        return weekday_from(anchor.first if back else anchor.end - DAY, unit, forward=not back)
    if unit == "weekend":
        return weekend_from(anchor.first, -1 if back else 1)
    if unit in ("minute", "hour"):
        return anchor
    if count is not None and anchor.end - anchor.first == DAY:
        day = anchor.first - steps(unit, count_of(count)) if back else anchor.first + steps(unit, count_of(count))
        return Days(day, day + DAY)
    step = steps(unit, count_of(count or ""))
    return Days(anchor.first - step, anchor.first) if back else Days(anchor.end, anchor.end + step)


def _open(time: Phrase, beside: re.Match[str], today: date) -> Phrase:
    days = latest(time.periods[0], today)
    open_days = {
        "since": Days(first=days.first),
        "after": Days(first=days.end),
        "before": Days(end=days.first),
        "prior to": Days(end=days.first),
    }.get(beside["way"], Days(end=days.end))
    return replace(time, start=_start(time, beside), periods=(open_days,))


def _start(time: Phrase, left: re.Match[str]) -> int:
    return time.start - (len(left.string) - left.start())
