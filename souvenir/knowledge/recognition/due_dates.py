"""Days that a sentence names, relative to the day on which it was said.

A day without a year is the next one, unless the last one is less than two months ago. A weekday, and a day of the month
by itself, is the next one. English, with the months, weekdays, prepositions and ordinals of German, Spanish and Dutch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

from souvenir.core.dates import FOREIGN_MONTHS, MONTHS
from souvenir.knowledge.recognition.word_patterns import PLAIN, words_of

PAST = timedelta(days=60)
"""A day without a year that is at most so long ago is the past one."""

_MONTH_OF = {**FOREIGN_MONTHS, **MONTHS}
_WEEKDAY_NAMES = (
    "monday tuesday wednesday thursday friday saturday sunday",
    "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    "lunes martes miércoles jueves viernes sábado domingo",
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
)
_WEEKDAY_OF = {name: number for names in _WEEKDAY_NAMES for number, name in enumerate(names.split())}
_WEEKDAY_OF |= {"tues": 1, "weds": 2, "thurs": 3, "fri": 4}
_RELATIVE = {"today": 0, "tonight": 0, "heute": 0, "hoy": 0, "vandaag": 0}
_RELATIVE |= {"heute abend": 0, "esta noche": 0, "vanavond": 0}
_RELATIVE |= {"tomorrow": 1, "tmrw": 1, "tomorrow night": 1, "morgen": 1, "mañana": 1}
_RELATIVE |= {"the day after tomorrow": 2, "übermorgen": 2, "pasado mañana": 2, "overmorgen": 2}

_ORDINAL_NAMES = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth "
    "twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first",
    "ersten zweiten dritten vierten fünften sechsten siebten achten neunten zehnten elften zwölften dreizehnten "
    "vierzehnten fünfzehnten sechzehnten siebzehnten achtzehnten neunzehnten zwanzigsten einundzwanzigsten "
    "zweiundzwanzigsten dreiundzwanzigsten vierundzwanzigsten fünfundzwanzigsten sechsundzwanzigsten "
    "siebenundzwanzigsten achtundzwanzigsten neunundzwanzigsten dreißigsten einunddreißigsten",
    "eerste tweede derde vierde vijfde zesde zevende achtste negende tiende elfde twaalfde dertiende veertiende "
    "vijftiende zestiende zeventiende achttiende negentiende twintigste eenentwintigste tweeëntwintigste "
    "drieëntwintigste vierentwintigste vijfentwintigste zesentwintigste zevenentwintigste achtentwintigste "
    "negenentwintigste dertigste eenendertigste",
)
_ORDINAL_OF = {name: number for names in _ORDINAL_NAMES for number, name in enumerate(names.split(), 1)}

_MONTH = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_WEEKDAY = "|".join(sorted(_WEEKDAY_OF, key=len, reverse=True))
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_NTH = rf"{_DAY}(?:st|nd|rd|th)"
_ORDINAL = "|".join(sorted(_ORDINAL_OF, key=len, reverse=True))
_LATE_ORDINAL = "|".join(name for name, number in _ORDINAL_OF.items() if number > 10)
"""Ordinals that hardly count anything but days."""
_ALONE = r"(?!\s*%)(?=\W*$|\s*[,;:!?)]|\s+(?:at|and|but|so|instead|um|und|statt|om|en|in plaats|y|a las|por)\b)"
"""No noun follows, which the number would count."""
_YEAR = r"(?:,?\s+(?:de\s+)?(?P<year>20\d\d)\b)?"
_PATTERNS = (
    r"(?P<iso>20\d\d-\d\d-\d\d)",
    rf"(?P<day>{_DAY})(?:st|nd|rd|th|\.)?(?:\s+(?:of|de))?\s+(?P<month>{_MONTH})\b\.?{_YEAR}",
    rf"(?P<month>{_MONTH})\b\.?\s+(?:the\s+)?(?P<day>{_DAY})(?:st|nd|rd|th)?(?!\d|[:.]\d|\s*(?:am|pm|%)\b){_YEAR}",
    rf"(?P<day>{_ORDINAL})\s+(?:of\s+)?(?P<month>(?<=of )may|(?!may)(?:{_MONTH}))\b{_YEAR}",
    rf"(?:end of|ende|einde?(?: van)?|final(?:es)? de|fin de)\s+(?P<end>{_MONTH})\b",
    r"(?P<ending>end of (?:the|this) month|month['’]s end|ende (?:des|dieses) monats|monatsende"
    r"|fin(?:al|ales|es)? de(?:l| este)? mes|einde? van (?:de|deze) maand)\b",
    rf"(?:(?:{_WEEKDAY}),?\s*\(?\s*(?:the\s+)?|the\s+)(?P<nth>{_NTH})\b",
    rf"(?:the|de|den|dem|am|vom|zum)\s+(?P<nth>{_LATE_ORDINAL}){_ALONE}",
    rf"(?:by|before|until|till|on)\s+(?P<nth>{_NTH})(?:{_ALONE}|(?=\s+for\b))",
    rf"(?:am|vom|zum)\s+(?P<nth>{_DAY})\.(?=\s+(?-i:[a-zäöü])|\W*$)",
    rf"(?:de\s+(?P<nth>{_DAY})(?:e|de|ste)|el\s+(?:día\s+)?(?P<el>{_DAY})){_ALONE}",
    rf"(?<!last )(?<!past )(?<!each )(?<!every )(?<!week on )(?P<next>next )?(?P<weekday>{_WEEKDAY})\b(?! week\b)"
    rf"(?!,?\s*\(?(?:(?:the|de)\s+)?(?:\d|(?:{_ORDINAL})\b|(?:{_MONTH})\b\.?\s+(?:the\s+)?\d))",
    rf"(?<!guten )(?<!\bam )(?<!jeden )(?<!diesen )(?<!heute )(?<!\bla )(?<!esta )(?<!cada )(?<!goede )(?<!elke )"
    r"(?<!week )"
    rf"(?P<relative>{'|'.join(sorted(_RELATIVE, key=len, reverse=True))})\b(?!(?<=\Amorgen)[,!])",
)
_FROM_TO = re.compile(
    rf"\b(?P<first>{_DAY})(?:st|nd|rd|th|\.|e)?\s+"
    r"(?:to|until|till|and|bis(?: zum)?|und|al?|y|tot(?: en met)?|t/m|en|-|–)"
    rf"\s+(?:the\s+)?(?P<second>{_DAY})(?:st|nd|rd|th|\.|e)?\s+(?:of\s+|de\s+)?(?P<month>{_MONTH})\b",
    re.IGNORECASE,
)
_DATES = tuple(re.compile(rf"(?<![\w.,/-]){pattern}", re.IGNORECASE) for pattern in _PATTERNS)

_FIRST_WORDS = (re.split(r"\W", name)[0] for name in _LATE_ORDINAL.split("|"))
_LAST_WORDS = (name.split()[-1] for name in (*_MONTH_OF, *_WEEKDAY_OF, *_RELATIVE))
_NECESSARY = frozenset((*_FIRST_WORDS, *_LAST_WORDS, *"month monats monatsende mes maand".split()))
"""A sentence without any of these words and without a digit names no day."""
_DIGIT = re.compile("[0-9]")


class NamedDay(NamedTuple):
    """A day, with its place in the sentence.

    :param is_exact: Whether its month is named. :param is_numbered: Whether it is named by a number, as in "the 24th".
    :param is_relative: Whether it is named by the day on which it was said, as in "tomorrow".
    """

    start: int
    end: int
    day: date
    is_exact: bool
    is_numbered: bool
    is_relative: bool = False


def named_days(sentence: str, said_on: date) -> list[NamedDay]:
    """Return the days that a sentence names, in order of appearance."""
    sentence = sentence.translate(PLAIN)
    if _NECESSARY.isdisjoint(words_of(sentence)) and not _DIGIT.search(sentence):
        return []
    found: list[NamedDay] = []
    for one in _all_days(sentence, said_on):
        if not any(one.start < other.end and other.start < one.end for other in found):
            found.append(one)
    return sorted(found)


def _all_days(sentence: str, said_on: date) -> Iterator[NamedDay]:
    for match in _FROM_TO.finditer(sentence):
        for group in ("first", "second"):
            yield from _valid(match.start(group), match.end(group), _nearest(match["month"], match[group], said_on))
        # The month belongs to the second day.
        yield from _valid(match.start("second"), match.end(), _nearest(match["month"], match["second"], said_on))
    for pattern in _DATES:
        for match in pattern.finditer(sentence):
            day = _day_of(match.groupdict(), said_on)
            named = {name for name, text in match.groupdict().items() if text}
            if day is not None:
                is_exact = not {"weekday", "relative", "nth", "el", "ending"} & named
                is_numbered = not {"weekday", "relative", "ending"} & named
                yield NamedDay(match.start(), match.end(), day, is_exact, is_numbered, "relative" in named)


def _valid(start: int, end: int, day: date | None) -> Iterator[NamedDay]:
    if day is not None:
        yield NamedDay(start, end, day, is_exact=True, is_numbered=True)


def _day_of(said: dict[str, str | None], said_on: date) -> date | None:
    if text := said.get("iso"):
        return _date(*map(int, text.split("-")))
    if text := said.get("relative"):
        return said_on + timedelta(days=_RELATIVE[text.lower()])
    if text := said.get("weekday"):
        ahead = (_WEEKDAY_OF[text.lower()] - said_on.weekday() - 1) % 7 + 1
        return said_on + timedelta(days=ahead + (7 if said.get("next") and ahead < 3 else 0))
    if text := said.get("nth") or said.get("el"):
        return next_of_month(_number(text), said_on)
    if said.get("ending"):
        return _end_of_month(said_on)
    if text := said.get("end"):
        first = _nearest(text, "1", said_on)
        return first and _end_of_month(first)
    month, day, year = said.get("month") or "", said.get("day") or "", said.get("year")
    return _date(int(year), _MONTH_OF[month.lower()], _number(day)) if year else _nearest(month, day, said_on)


def _end_of_month(day: date) -> date:
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)


def _nearest(month: str, day: str, said_on: date) -> date | None:
    """Return the last such day if it is not long ago, else the next one."""
    years = (said_on.year + offset for offset in (-1, 0, 1))
    days = [_date(year, _MONTH_OF[month.lower()], _number(day)) for year in years]
    return next((one for one in days if one and said_on - one <= PAST), None)


def _number(day: str) -> int:
    return _ORDINAL_OF.get(day.lower()) or int(re.sub(r"\D", "", day))


def next_of_month(day: int, said_on: date) -> date | None:
    """Return the first day with this number from a day on, in its month or the next one."""
    first = said_on.replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    days = (_date(month.year, month.month, day) for month in (first, following))
    return next((one for one in days if one is not None and one >= said_on), None)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
