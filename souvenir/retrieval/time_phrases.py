"""A single time in a text: its wording, and the days it refers to.

Recognition is our own, so that ordinary words are not taken for dates ("may" and "march" are verbs, "June" is a
person); parsing of a written date and calendar arithmetic are dateutil's.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from dateutil.parser import parse as parse_date
from dateutil.relativedelta import relativedelta, weekday

from souvenir.core.dates import MONTHS

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Days:
    """From `first` up to, but excluding, `end`. An open side has the minimum or maximum date."""

    first: date = date.min
    end: date = date.max


@dataclass(frozen=True, slots=True)
class Yearly:
    """A month of every year, or with `day` a day of it."""

    month: int
    day: int | None = None


Period = Days | Yearly


@dataclass(frozen=True, slots=True)
class Phrase:
    """A time that a text names, from `start` to `end` in it.

    :param periods: Its possible meanings; for `5/8/2023` both readings.
    :param near: The single days that it names, including reference days ("the week before 3 August").
    :param written: Whether it is a written date; else it is relative to now.
    """

    start: int
    end: int
    periods: tuple[Period, ...]
    near: tuple[Period, ...] = ()
    written: bool = True


# --- words --------------------------------------------------------------------------------------------------------

WEEKDAYS = {name.lower(): number for number, name in enumerate(calendar.day_name)}
UNITS = ("minute", "hour", "day", "week", "month", "year")
_COUNTS = {word: number for number, word in enumerate("one two three four five six seven eight nine ten".split(), 1)}
_COUNTS |= {"a": 1, "an": 1, "eleven": 11, "twelve": 12, "couple": 2, "few": 4, "several": 6}
DAY_WORDS = {
    "the day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "tomorrow": 1,
    "the day after tomorrow": 2,
}
_UNSURE_MONTHS = frozenset("april may june august march".split()) | {name for name in MONTHS if len(name) <= 4}
"""Names of people, verbs and abbreviations: a month only after a preposition, or next to a day or a year."""

_VERB = r"(?! (?:be|have|not|also|need|only|still|never|well|i|we|you|he|she|it|they|this|that|the)\b)"
"""Excludes the words that follow the verb "may"."""
_MONTH = f"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})" + r"\b(?:\.(?= ?[0-9]))?" + _VERB
_WEEKDAY = f"(?:{'|'.join(WEEKDAYS)})"
_YEAR = "(?:19|20)[0-9]{2}(?![0-9])"
_DAY = "(?:0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?(?![0-9a-z%]|[.:/][0-9])"
_COMMA_YEAR = rf"(?:,? (?P<year>{_YEAR}))?"
_TO = "(?: ?[-–] ?| (?:and|to|until|till|through) )"
_UNIT = f"(?:{'|'.join(UNITS)})"
COUNT = f"(?:[0-9]{{1,4}}|a (?:couple(?: of)?|few)|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_PART = r"(?:(?:the|early|late|mid|beginning of|start of|middle of|end of)[ -])*"
_START, _END = r"(?<![\w.,/-])", r"(?![\w/-])"
_AFTER_YEAR = "and or was is did do does with for to by on at as about than have has were are".split()
_ENDS_CLAUSE = rf"(?= ?(?:$|[?.!,;:)'’]| (?:{'|'.join(_AFTER_YEAR)})\b))"
"""A year ends a clause; before a noun it is a number ("in 2000 units")."""


# --- the meaning of a match: each raises ValueError or OverflowError if there is no such day ------------------------


def _written(text: str, *, has_day: bool, has_year: bool, day_first: bool = False) -> Period:
    any_year = datetime(2000, 1, 1)  # noqa: DTZ001 - a leap year, for what is not written
    read = parse_date(text, default=any_year, dayfirst=day_first).date()
    if not has_year:
        return Yearly(read.month, read.day if has_day else None)
    return Days(read, read + DAY) if has_day else month_of(read)


def month_of(day: date) -> Days:
    first = day.replace(day=1)
    return Days(first, first + relativedelta(months=1))


def latest(period: Period, day: date) -> Days:
    """Return the period itself, or the last occurrence of a yearly one that had begun on that day."""
    if isinstance(period, Days):
        return period
    for year in range(day.year, day.year - 9, -1):
        if period.day == 29 and period.month == 2 and not calendar.isleap(year):
            continue
        first = date(year, period.month, period.day or 1)
        if first <= day:
            return month_of(first) if period.day is None else Days(first, first + DAY)
    raise ValueError(period)


def between(first: Period, last: Period, today: date) -> Days:
    """Return the days from the start of one to the end of the other; a missing year is inferred from the other one."""
    if isinstance(first, Days) and isinstance(last, Yearly):
        end = latest(last, first.first + relativedelta(years=1, days=-1))
    else:
        end = latest(last, today)
    return Days(latest(first, end.first).first, end.end)


def floor(day: date, unit: str) -> date:
    """Return the first day of the unit that contains a day; weeks begin on Monday."""
    if unit == "week":
        return day - day.weekday() * DAY
    if unit == "quarter":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    return {"month": day.replace(day=1), "year": day.replace(month=1, day=1)}.get(unit, day)


def steps(unit: str, count: int) -> relativedelta:
    return relativedelta(months=3 * count) if unit == "quarter" else relativedelta(**{unit + "s": count})


def count_of(word: str) -> int:
    word = word.removeprefix("a ").removesuffix(" of")
    return int(word) if word.isdigit() else _COUNTS[word or "a"]


def weekday_from(day: date, name: str, *, forward: bool) -> Days:
    """Return the next such weekday after a day, or the last one before it."""
    direction = 1 if forward else -1
    first = day + relativedelta(days=direction, weekday=weekday(WEEKDAYS[name], direction))
    return Days(first, first + DAY)


def weekend_from(day: date, step: int) -> Days:
    """Return the weekend of the day's week (0), the next one, or the last one that was over before the day."""
    saturday = floor(day, "week") + (5 + 7 * step) * DAY
    return Days(saturday, saturday + 2 * DAY)


def _day(match: re.Match[str], today: datetime) -> Phrase:
    day = _written(match["date"], has_day=True, has_year=match["year"] is not None)
    return _phrase(match, (day,), near=(day,))


def _number_day(match: re.Match[str], today: datetime) -> Phrase:
    """5/8/2023 is ambiguous between May and August; 8.5.2023 is not."""
    readings = (True,) if "." in match["date"] else (False, True)
    days = [_written(match["date"], has_day=True, has_year=True, day_first=first) for first in readings]
    return _phrase(match, tuple(dict.fromkeys(days)), near=tuple(dict.fromkeys(days)))


def _days(match: re.Match[str], today: datetime) -> Phrase:
    year = match["year"] or ""
    dates = (f"{match[end]} {match['month']} {year}" for end in ("first", "last"))
    first, last = (_written(text, has_day=True, has_year=bool(year)) for text in dates)
    return _phrase(match, (between(first, last, today.date()),), near=(first, last))


def _month(match: re.Match[str], today: datetime) -> Phrase | None:
    month, year = match["month"], match["year"] or ""
    if not year and not match["before"] and month in _UNSURE_MONTHS:
        return None
    return _phrase(match, (_written(f"{month} {year}", has_day=False, has_year=bool(year)),))


def _months(match: re.Match[str], today: datetime) -> Phrase:
    """Months of every year, unless a year is written."""
    first, last = Yearly(MONTHS[match["first"]]), Yearly(MONTHS[match["last"]])
    if match["year"]:
        end = month_of(date(int(match["year"]), last.month, 1))
        return _phrase(match, (Days(latest(first, end.first).first, end.end),))
    months = range(first.month, first.month + (last.month - first.month) % 12 + 1)
    return _phrase(match, tuple(Yearly((month - 1) % 12 + 1) for month in months))


def _years(match: re.Match[str], today: datetime) -> Phrase:
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return _phrase(match, (Days(date(first, 1, 1), date(last + 1, 1, 1)),))


def _day_word(match: re.Match[str], today: datetime) -> Phrase:
    first = today.date() + DAY_WORDS[match["date"]] * DAY
    return _relative(match, Days(first, first + DAY))


def _weekday(match: re.Match[str], today: datetime) -> Phrase:
    """The last one before today; "next Friday" the first one after, "this Friday" that of this week."""
    day, which = today.date(), match["which"]
    if which == "this":
        first = floor(day, "week") + WEEKDAYS[match["weekday"]] * DAY
        return _relative(match, Days(first, first + DAY))
    return _relative(match, weekday_from(day, match["weekday"], forward=which in ("next", "coming")))


def _last_month(match: re.Match[str], today: datetime) -> Phrase:
    """The last one that is over."""
    return _relative(match, latest(Yearly(MONTHS[match["month"]]), floor(today.date(), "month") - DAY))


def _calendar(match: re.Match[str], today: datetime) -> Phrase:
    """The calendar's unit: "last month" is not the last thirty days."""
    step = {"last": -1, "previous": -1, "this": 0, "current": 0, "next": 1, "coming": 1}[match["which"]]
    unit = match["unit"]
    if unit == "weekend":
        return _relative(match, weekend_from(today.date(), step))
    first = floor(today.date(), unit) + steps(unit, step)
    return _relative(match, Days(first, first + steps(unit, 1)))


def _rolling(match: re.Match[str], today: datetime) -> Phrase:
    """Back from now: "the last three weeks" include today."""
    first = today - steps(match["unit"] or match["one"], count_of(match["count"] or ""))
    return _relative(match, Days(first.date(), today.date() + DAY))


def _ago(match: re.Match[str], today: datetime) -> Phrase:
    """A month for "three months ago"; a day for "three days ago" and for "three hours ago"."""
    unit = match["unit"]
    first = floor((today - steps(unit, count_of(match["count"]))).date(), unit)
    return _relative(match, Days(first, first + (DAY if unit in ("minute", "hour") else steps(unit, 1))))


def _phrase(match: re.Match[str], periods: tuple[Period, ...], near: tuple[Period, ...] = ()) -> Phrase:
    return Phrase(match.start("date"), match.end("date"), periods, near)


def _relative(match: re.Match[str], days: Days) -> Phrase:
    near = (days,) if days.end - days.first == DAY else ()
    return Phrase(match.start("date"), match.end("date"), (days,), near, written=False)


Reader = Callable[[re.Match[str], datetime], Phrase | None]

READERS: tuple[tuple[re.Pattern[str], Reader], ...] = tuple(
    (re.compile(pattern), reader)
    for pattern, reader in (
        # 8 to 12 May 2023 · May 8-12 · 8th of May · May 8, 2023 · 2023-05-08 · 5/8/2023 · 8.5.2023
        (
            rf"{_START}(?P<date>(?:between |from )?(?P<first>{_DAY}){_TO}(?P<last>{_DAY}) "
            rf"(?:of )?(?P<month>{_MONTH}){_COMMA_YEAR})",
            _days,
        ),
        (rf"{_START}(?P<date>(?P<month>{_MONTH}) ?(?P<first>{_DAY}){_TO}(?P<last>{_DAY}){_COMMA_YEAR})", _days),
        (rf"{_START}(?P<date>{_DAY} (?:of )?{_MONTH}{_COMMA_YEAR})", _day),
        (rf"{_START}(?P<date>{_MONTH} (?:the )?{_DAY}{_COMMA_YEAR})", _day),
        (rf"{_START}(?P<date>(?P<year>{_YEAR})([-/])[0-9]{{2}}\3[0-9]{{2}}){_END}", _day),
        (rf"{_START}(?P<date>[0-9]{{1,2}}([./])[0-9]{{1,2}}\2{_YEAR}){_END}", _number_day),
        # between March and May 2023 · 2023-05 · May 2023 · in May
        (rf"\b(?P<date>(?:between|from) (?P<first>{_MONTH}){_TO}(?P<last>{_MONTH}){_COMMA_YEAR})", _months),
        (rf"{_START}(?P<date>(?P<year>{_YEAR})-(?P<month>0[1-9]|1[0-2])){_END}", _month),
        (rf"\b(?P<date>last (?P<month>{_MONTH}))", _last_month),
        (
            rf"\b(?P<before>(?:(?:in|of|during|since|until|till|by|before|after|next) )?{_PART})"
            rf"(?P<date>(?P<month>{_MONTH})(?:,?(?: of)? (?P<year>{_YEAR}))?)",
            _month,
        ),
        # the last three weeks · the past month · three weeks ago · two days earlier · last week · next year
        (
            rf"\b(?P<date>(?:last|past|previous) (?P<count>{COUNT}) (?P<unit>{_UNIT})s?|past (?P<one>{_UNIT}))\b",
            _rolling,
        ),
        (
            rf"\b(?P<date>(?P<count>{COUNT}) (?P<unit>{_UNIT})s? "
            r"(?:ago\b|(?:earlier|before|back)(?= ?(?:$|[?.!,;]))))",
            _ago,
        ),
        (
            r"\b(?P<date>(?P<which>last|previous|this|current|next|coming) "
            r"(?P<unit>week|weekend|month|quarter|year))\b(?![-]| of\b)",
            _calendar,
        ),
        # yesterday · last Friday · on Friday · in 2023 · between 2020 and 2022
        (rf"\b(?P<date>{'|'.join(sorted(DAY_WORDS, key=len, reverse=True))})\b", _day_word),
        (rf"\b(?P<date>(?P<which>last|previous|this|next|coming) (?P<weekday>{_WEEKDAY}))\b", _weekday),
        (rf"\b(?:on|since|until|till|by|before|after) (?P<which>)(?P<date>(?P<weekday>{_WEEKDAY}))\b", _weekday),
        (rf"\b(?P<date>(?:between|from) (?P<first>{_YEAR}){_TO}(?P<last>{_YEAR}))", _years),
        (
            rf"\b(?:in|of|during|since|until|till|by|before|after|throughout|year) {_PART}"
            rf"(?P<date>(?P<first>{_YEAR})(?P<last>)){_ENDS_CLAUSE}",
            _years,
        ),
    )
)
"""In order of precedence: if two match in the same place, the earlier one is used."""
