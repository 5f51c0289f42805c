"""The times that a query names, and their effect on a search.

The rules, with reasons:

- **A named time is a boost, not a filter.** The day on which something happened is not the day on which it was
  mentioned. Of the answers to the 74 questions of LoCoMo's development conversations that name a time, the first ten
  results contain .818 without any use of it, .946 with this boost, .716 if only the named days are searched, and .899
  if those are searched wherever they contain anything (facts of the same conversations: .730, .901, .687, .837).
  Passages of the period get the profile's `period` term; those from one day before to ten days after a single named day
  also get its `day` term times ``exp(-days / 4)``.
- The period of a written day is its month (as measured). A shorter period relative to now is widened by the same day
  before and ten days after, in which it may be mentioned.
- **Only queries for when something was said are filtered**, if the wording is unambiguous: "what did I tell you
  yesterday", "messages from last week", "our conversation on 8 May". The filter is for the exact days, and applies only
  if nothing else in the query names a time. "What did I tell you about my trip in May" names the trip's time, and is a
  boost.
- "latest", "newest" and "most recent" give recency its weight, unless the query names a time.
- The caller's settings take precedence: with a `since` or `until`, the text adds no filter, and a nonzero weight of
  recency is kept.

`find_phrases` finds the times as phrases with their days: "two weeks before August 11", "between March and May". It
supports English, written dates and ISO 8601. Days are whole and in UTC, weeks begin on Monday, and a missing year stays
open. It does not support seasons (they differ between the hemispheres), words without a period ("recently", "the other
day") or times relative to an event ("two days before the wedding"). For a day that does not exist (30 February) it
returns the month.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
from numpy.typing import NDArray

from souvenir.core.dates import MONTHS
from souvenir.core.timestamps import EPOCH
from souvenir.core.types import SearchQuery, TimeSpan, TimeUse
from souvenir.retrieval.time_phrases import (
    COUNT,
    DAY,
    DAY_WORDS,
    READERS,
    UNITS,
    WEEKDAYS,
    Days,
    Period,
    Phrase,
    Yearly,
    between,
    count_of,
    latest,
    month_of,
    steps,
    weekday_from,
    weekend_from,
)

RECENCY_WEIGHT = 0.2
"""Weight for queries for the latest, if the caller sets none."""

DAYS_BEFORE, DAYS_AFTER = 1, 10
"""Passages this near to a named day may be about it."""

NEAR_DAYS = 4.0
"""``exp(-days / 4)``: the decay of nearness."""

SHORT_DAYS = 28

DAY_US = 86_400_000_000

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TimeIntent:
    """The time that a query names.

    :param phrases: The phrases in the query that name it.
    :param periods: The boosted periods; a passage in any of them is within.
    :param near: The single named days.
    :param asked: The days to which the query limits its results, if it does.
    :param latest: Whether it asks for the latest.
    :param words: The query for the words' arm: without times relative to now, since "last week" in a text is another
        week. None: unchanged.
    :param only: Whether it asks for nothing else ("what did I tell you yesterday").
    """

    phrases: tuple[str, ...]
    periods: tuple[Period, ...] = ()
    near: tuple[Period, ...] = ()
    asked: Days | None = None
    latest: bool = False
    words: str | None = None
    only: bool = False

    def applied_to(self, query: SearchQuery) -> tuple[SearchQuery, TimeUse]:
        """Apply the filter and the weight to a query; return it with a description of them.

        A search by meaning alone has no sum to add to, and is only filtered.
        """
        filters, weights = query.filters, query.weights
        filtered = None
        if self.asked is not None and filters.since is None and filters.until is None:
            filtered = _span(self.asked)
            filters = replace(filters, since=filtered.since, until=filtered.until)
        recency = RECENCY_WEIGHT if self.latest and query.hybrid and not weights.recency else None
        if recency is not None:
            weights = replace(weights, recency=recency)
        use = TimeUse(
            phrases=self.phrases,
            boosted=tuple(_span(period) for period in self.periods if query.hybrid),
            near=tuple(_span(day) for day in self.near if query.hybrid),
            filtered=filtered,
            recency=recency,
        )
        return replace(query, filters=filters, weights=weights), use

    def within(self, occurred_us: Integers) -> Floats:
        """1 for times within one of the periods, else 0.

        :param occurred_us: Microseconds since 1970 in UTC, shape (n,).
        :return: Shape (n,).
        """
        return _by_day(occurred_us // DAY_US, self._within)

    def near_to(self, occurred_us: Integers) -> Floats:
        """``exp(-days / 4)`` for times from a day before to ten days after a named day, else 0.

        Of several days the nearest counts. Shape (n,), as `occurred_us`.
        """
        return _by_day(occurred_us // DAY_US, self._near_to)

    def _within(self, days: Integers) -> Floats:
        found = np.zeros(len(days), dtype=np.bool_)
        months = _months(days) if any(isinstance(period, Yearly) for period in self.periods) else days
        for period in self.periods:
            if isinstance(period, Days):
                found |= (days >= _number(period.first)) & (days < _number(period.end))
            else:
                found |= months % 12 == period.month - 1
        return found.astype(np.float32)

    def _near_to(self, days: Integers) -> Floats:
        nearest = np.zeros(len(days), dtype=np.float32)
        for after in (days - named for period in self.near for named in _named_days(period, days)):
            close = (after >= -DAYS_BEFORE) & (after <= DAYS_AFTER)
            nearest[close] = np.maximum(nearest[close], np.exp(-np.abs(after[close]) / NEAR_DAYS))
        return nearest


def time_intent(text: str, now: datetime) -> TimeIntent | None:
    """Return the time that a query names, or None.

    :param now: The reference of times like "last week"; aware.
    """
    text = readable(text)
    phrases = find_phrases(text, now)
    if not phrases:
        newest = _LATEST.search(text)
        return None if newest is None else TimeIntent((newest.group(),), latest=True)
    today = now.astimezone(UTC).date()
    return TimeIntent(
        phrases=tuple(text[phrase.start : phrase.end] for phrase in phrases),
        periods=tuple(dict.fromkeys(period for phrase in phrases for period in _boosted(phrase))),
        near=tuple(dict.fromkeys(day for phrase in phrases for day in phrase.near)),
        asked=_asked(text, phrases, today),
        words=_without(text, [one for one in phrases if not one.written])
        if any(not p.written for p in phrases)
        else None,
        only=_says_nothing(_without(text, phrases)),
    )


@dataclass(frozen=True, slots=True)
class NamedTime:
    """The time that a text names, for callers that need a time instead of a query.

    :param span: From the first to the last day; of several readings or times, from the first to the last of all.
    :param words: The rest of the text; None if there is none.
    """

    span: TimeSpan
    words: str | None


def named_time(text: str, now: datetime) -> NamedTime | None:
    """Return the time that a text names, or None if it names none; "latest" is an unlimited time.

    :param now: The reference of times like "last week"; aware. A month without a year is the last one that had begun.
    """
    text = readable(text)
    phrases = find_phrases(text, now)
    if phrases:
        today = now.astimezone(UTC).date()
        days = [latest(period, today) for phrase in phrases for period in phrase.periods]
        span = _span(Days(min(one.first for one in days), max(one.end for one in days)))
        left = _without(text, phrases)
    elif newest := _LATEST.search(text):
        span, left = TimeSpan(), text[: newest.start()] + text[newest.end() :]
    else:
        return None
    return NamedTime(span, None if _says_nothing(left) else left)


_LATEST = re.compile(r"\b(?:latest|newest|most recent(?:ly)?)\b", re.IGNORECASE)


def _without(text: str, phrases: Sequence[Phrase]) -> str:
    left, start = "", 0
    for phrase in phrases:
        left += text[start : phrase.start] + " "
        start = phrase.end
    return left + text[start:]


def _says_nothing(left: str) -> bool:
    return set(_WORD.findall(left.lower())) <= _SAYS_NOTHING


# --- the boost ----------------------------------------------------------------------------------------------------


def _boosted(phrase: Phrase) -> Iterator[Period]:
    yield from (_widened(period) for period in phrase.periods if not (phrase.written and period in phrase.near))
    if phrase.written:
        for day in phrase.near:
            yield month_of(day.first) if isinstance(day, Days) else Yearly(day.month)


def _widened(period: Period) -> Period:
    if isinstance(period, Yearly) or period.end - period.first >= SHORT_DAYS * DAY:
        return period
    return Days(period.first - DAYS_BEFORE * DAY, period.end + DAYS_AFTER * DAY)


def _by_day(days: Integers, values_of: Callable[[Integers], Floats]) -> Floats:
    """Return the values of days since 1970, computed per calendar day if that is less work than per element."""
    if len(days) == 0:
        return np.zeros(0, dtype=np.float32)
    first, last = int(days.min()), int(days.max())
    if last - first > len(days):
        return values_of(days)
    return values_of(np.arange(first, last + 1, dtype=np.int64))[days - first]


def _months(days: Integers) -> Integers:
    """Convert days since 1970 to months since January 1970."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _named_days(period: Period, days: Integers) -> Iterator[Integers | int]:
    """Yield a named day as days since 1970; for a yearly day, those in and around the year of each given day."""
    if isinstance(period, Days):
        yield _number(period.first)
        return
    januaries = _months(days) // 12 * 12
    for year in (-1, 0, 1):
        months = januaries + 12 * year + period.month - 1
        named = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + (period.day or 1) - 1
        yield np.where(_months(named) == months, named, np.int64(2**62))


def _number(day: date) -> int:
    return (day - EPOCH.date()).days


# --- the filter ---------------------------------------------------------------------------------------------------

_SAY = "say said tell told mention mentioned ask asked discuss discussed talk talked chat chatted speak spoke".split()
_WORD = re.compile(r"\w+")
_SAYS_NOTHING = frozenset(
    "a about again all anything at been by can conversation conversations chat chats did do does during earlier from "
    "had happen happened has have i in is just me message messages my new note notes of on our please show something "
    "the there things to us was we were what which with you your".split()
) | frozenset(_SAY)
"""Words of a query that contain nothing but a time."""

_SAID = re.compile(
    rf"(?:\b(?:i|we|you)(?: (?:have|had|just|also|already|last))* (?:{'|'.join(_SAY)})"
    r"(?: about)?(?: (?:to |with )?(?:you|me|us))?"
    r"|\b(?:was|were|been) said"
    r"|\b(?:messages?|conversations?|chats?|notes?)(?: (?:i|we|you) (?:had|sent|wrote))?)"
    r"(?: (?:on|in|of|from|during|between|earlier))*(?: the)? $"
)
"""Wording before a time that limits what was said."""

_SAID_AFTER = re.compile(r"(?:['’]s? |, ?| )(?:messages?|conversations?|chats?|notes?)\b")
"""Wording after such a time: "last week's messages"."""


def _asked(text: str, phrases: Sequence[Phrase], today: date) -> Days | None:
    """Return the exact days, if the only time that the query names is that of a message."""
    if len(phrases) != 1 or len(phrases[0].periods) != 1:
        return None
    [phrase] = phrases
    lowered = text.lower()
    if _SAID.search(lowered[: phrase.start]) or _SAID_AFTER.match(lowered, phrase.end):
        with suppress(ValueError, OverflowError):  # there is no such day before year 1
            return latest(phrase.periods[0], today)
    return None


def _span(period: Period) -> TimeSpan:
    if isinstance(period, Yearly):
        return TimeSpan(month=period.month, day=period.day)
    return TimeSpan(
        since=None if period.first == date.min else _midnight(period.first),
        until=None if period.end == date.max else _midnight(period.end) - timedelta(microseconds=1),
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


MAX_READ_CHARS = 2_000
"""Analysed length of a query; the rest is pasted text."""

EARLIEST, LATEST = date(1800, 1, 1), date(2200, 1, 1)
"""Days outside of these are ignored, as in "5,000 years ago"."""

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Keeps the position of every character, unlike `str.lower`."""

_LETTERS = re.compile(r"[a-z]+")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_TRIGGERS = frozenset(("weekend", "quarter", *UNITS, *(unit + "s" for unit in UNITS)))
_TRIGGERS |= {*MONTHS, *WEEKDAYS, *(words.split()[-1] for words in DAY_WORDS)}
"""A time without a year contains one of these words. Most queries have none, and need no further analysis."""

_LEFT_CHARS = 60
_SHIFT = re.compile(
    rf"\b(?:(?P<count>{COUNT})|the|last|the last|the previous|the following) "
    rf"(?P<unit>{'|'.join(UNITS)}|weekend|{'|'.join(WEEKDAYS)})s? (?P<side>before|prior to|preceding|after|following) $"
)
_OPEN = re.compile(r"\b(?P<side>since|after|before|prior to|until|till|up to) (?:(?:the|early|mid|late|end of) ?)*$")
_PAIR = re.compile(r"\b(?:between|from) (?:the )?$")
_GAP = re.compile(r" ?[-–] ?| (?P<word>and|to|until|till|through) (?:the )?")


def readable(text: str) -> str:
    """Return the analysed start of a query, with single spaces."""
    return " ".join(text[:MAX_READ_CHARS].split())


def find_phrases(text: str, now: datetime) -> list[Phrase]:
    """Return the times that a prepared query names, in order; those relative to `now` only if no date is written.

    "What did she finish last Friday, on 23 January 2022?" refers to that January, not to now.
    """
    lowered = text.translate(_LOWER)
    if _TRIGGERS.isdisjoint(_LETTERS.findall(lowered)) and _YEAR.search(lowered) is None:
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
    """Return every single time, without the words before it."""
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
    """Merge pairs into one phrase, and include the words before a time."""
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
            elif opening := _OPEN.search(left):
                time = _open(time, opening, today)
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
    days = _counted(anchor, unit, shift["count"], back=shift["side"] not in ("after", "following"))
    single: tuple[Period, ...] = (days,) if days.end - days.first == DAY else ()
    return replace(time, start=_start(time, shift), periods=(days,), near=time.near + single)


def _counted(anchor: Days, unit: str, count: str | None, *, back: bool) -> Days:
    """Return a day for "two weeks before" a day; for "the week before", the seven days up to it."""
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


def _open(time: Phrase, opening: re.Match[str], today: date) -> Phrase:
    days = latest(time.periods[0], today)
    open_days = {
        "since": Days(first=days.first),
        "after": Days(first=days.end),
        "before": Days(end=days.first),
        "prior to": Days(end=days.first),
    }.get(opening["side"], Days(end=days.end))
    return replace(time, start=_start(time, opening), periods=(open_days,))


def _start(time: Phrase, left: re.Match[str]) -> int:
    return time.start - (len(left.string) - left.start())
