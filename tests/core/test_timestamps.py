"""Times as microseconds: exact, ordered, and reversible."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.timestamps import from_us, to_us, utc_now

zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=zones)  # noqa: DTZ001 - the zones are drawn


@given(moment=moments)
def test_a_time_round_trips_as_the_same_time_in_utc(moment: datetime):
    again = from_us(to_us(moment))
    assert again == moment
    assert again.tzinfo is UTC


@given(one=moments, other=moments)
def test_microseconds_keep_the_order_of_times(one: datetime, other: datetime):
    assert (to_us(one) < to_us(other)) == (one < other)


def test_microseconds_count_from_1970():
    assert to_us(datetime(1970, 1, 1, 0, 0, 1, 2, tzinfo=UTC)) == 1_000_002
    assert utc_now().tzinfo is UTC
