"""English and German month names, and the order of day and month in numeric dates.

Shared by the recognisers of dates in text: those of queries (`retrieval`), of concepts (`knowledge`) and of transcripts
(`learning`), each with its own rules for what counts as a date. The names do not depend on the locale.
"""

from __future__ import annotations

from collections.abc import Mapping

MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

MONTH_ABBREVIATIONS = tuple(name[:3] for name in MONTH_NAMES)

MONTHS: Mapping[str, int] = {
    **{name: number for number, name in enumerate(MONTH_NAMES, 1)},
    **{name: number for number, name in enumerate(MONTH_ABBREVIATIONS, 1)},
    "sept": 9,
}
"""The number of a month by its name or abbreviation in lower case."""


GERMAN_MONTH_NAMES = (
    *("januar", "februar", "märz", "april", "mai", "juni"),
    *("juli", "august", "september", "oktober", "november", "dezember"),
)


SPANISH_MONTH_NAMES = (
    *("enero", "febrero", "marzo", "abril", "mayo", "junio"),
    *("julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"),
)
DUTCH_MONTH_NAMES = (
    *("januari", "februari", "maart", "april", "mei", "juni"),
    *("juli", "augustus", "september", "oktober", "november", "december"),
)

FOREIGN_MONTHS: Mapping[str, int] = {
    name: number
    for names in (GERMAN_MONTH_NAMES, SPANISH_MONTH_NAMES, DUTCH_MONTH_NAMES)
    for number, name in enumerate(names, 1)
}
"""The number of a month by its German, Spanish or Dutch name in lower case."""


def is_day_first(first: int, second: int) -> bool | None:
    """Return whether the day precedes the month, as in 13/5/2023; None if it may be either, as in 5/8/2023."""
    if first <= len(MONTH_NAMES) and second <= len(MONTH_NAMES) and first != second:
        return None
    return first > len(MONTH_NAMES)
