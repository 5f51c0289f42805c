"""The recognisers of dates in text agree on every written date."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.dates import MONTH_NAMES, MONTHS, is_day_first
from souvenir.knowledge.recognition.extraction import mentioned
from souvenir.learning.transcripts.turns import parse_stamp
from souvenir.retrieval.time_intent import find_phrases, readable
from souvenir.retrieval.time_phrases import Days

NOW = datetime(2026, 1, 15, tzinfo=UTC)
DAYS = st.dates(date(1901, 1, 1), date(2099, 12, 31))


def test_months_are_recognised_by_name_and_abbreviation() -> None:
    expected = {name: datetime.strptime(name, "%B").month for name in MONTH_NAMES}  # noqa: DTZ007 - a month only
    expected |= {name[:3]: number for name, number in expected.items()}
    assert {**expected, "sept": 9} == MONTHS


@pytest.mark.parametrize(
    ("first", "second", "expected"), [(13, 5, True), (5, 13, False), (5, 5, False), (5, 8, None), (12, 1, None)]
)
def test_a_numeric_date_has_an_order_if_only_one_reading_exists(first: int, second: int, expected: bool | None) -> None:
    assert is_day_first(first, second) is expected


def spellings(day: date) -> Iterator[str]:
    name = MONTH_NAMES[day.month - 1].title()
    for month in (name, name[:3]):
        yield f"{day.day} {month} {day.year}"
        yield f"{month} {day.day}, {day.year}"
    yield day.isoformat()
    if day.day > 12:
        yield f"{day.day}/{day.month}/{day.year}"
        yield f"{day.month}/{day.day}/{day.year}"


@given(DAYS)
def test_all_recognisers_agree_on_the_day(day: date) -> None:
    for text in spellings(day):
        assert mentioned(f"We met on {text}.") == (), text
        stamp = parse_stamp(text, None)
        assert stamp is not None, text
        assert stamp.date() == day, text
        [phrase] = find_phrases(readable(f"what happened on {text}?"), NOW)
        assert phrase.near == (Days(day, day + timedelta(days=1)),), text


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1990, 2030))
def test_no_recogniser_guesses_the_order_of_day_and_month(first: int, second: int, year: int) -> None:
    text = f"{first}/{second}/{year}"
    readings = {date(year, first, second), date(year, second, first)}
    stamp = parse_stamp(text, None)
    [phrase] = find_phrases(readable(f"what happened on {text}?"), NOW)
    assert {*phrase.near} == {Days(day, day + timedelta(days=1)) for day in readings}
    assert (stamp is not None) == (len(readings) == 1)
