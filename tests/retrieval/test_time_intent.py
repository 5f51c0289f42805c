"""Times in queries: which words are times, which days they mean, and when they filter."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from souvenir.core.timestamps import to_us
from souvenir.core.types import Filters, SearchQuery, TimeSpan, Weights
from souvenir.retrieval.time_intent import (
    MAX_READ_CHARS,
    NamedTime,
    TimeIntent,
    find_phrases,
    named_time,
    readable,
    time_intent,
)
from souvenir.retrieval.time_phrases import Days, Period, Yearly
from tests.growth import assert_linear
from tests.reference import times

NOW = datetime(2023, 6, 15, 12, 30, tzinfo=UTC)
"""A Thursday."""

WORDS = (
    "last past previous this next on in of the a couple few three 12 2023 1999 ago before after since until between "
    "and from to week weeks month months year years day days weekend monday friday may march june sept dec 29 february "
    "9999 31 8th 2023-05-08 5/8/2023 31.12.9999 yesterday today tonight tomorrow night "
    "did i tell you messages latest ? , . - '"
).split()


def named(text: str, now: datetime = NOW) -> dict[str, list[str]]:
    """Return every time that the text names, with its words and periods."""
    text = readable(text)
    return {
        text[phrase.start : phrase.end]: [shown(period) for period in phrase.periods]
        for phrase in find_phrases(text, now)
    }


def shown(period: Period) -> str:
    """Return the first day and the day after the last, or the month (and day) of every year."""
    if isinstance(period, Yearly):
        return f"*-{period.month:02}" + ("" if period.day is None else f"-{period.day:02}")
    first = "" if period.first == date.min else period.first.isoformat()
    end = "" if period.end == date.max else period.end.isoformat()
    return f"{first}..{end}"


def at(*days: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([to_us(datetime.fromisoformat(day).replace(tzinfo=UTC)) for day in days], dtype=np.int64)


def intent_of(text: str, now: datetime = NOW) -> TimeIntent:
    intent = time_intent(text, now)
    assert intent is not None
    return intent


@pytest.mark.parametrize(
    ("text", "phrase", "period"),
    [
        ("Who came on 8 May 2023?", "8 May 2023", "2023-05-08..2023-05-09"),
        ("who came on the 8th of may, 2023", "8th of may, 2023", "2023-05-08..2023-05-09"),
        ("Who came on May 8, 2023?", "May 8, 2023", "2023-05-08..2023-05-09"),
        ("Who came on Sept. 5th 2022", "Sept. 5th 2022", "2022-09-05..2022-09-06"),
        ("who came on 16 August,  2023", "16 August, 2023", "2023-08-16..2023-08-17"),
        ("deploy of 2023-05-08?", "2023-05-08", "2023-05-08..2023-05-09"),
        ("deploy of 2023/05/08", "2023/05/08", "2023-05-08..2023-05-09"),
        ("paid on 8.5.2023", "8.5.2023", "2023-05-08..2023-05-09"),
        ("29 February 2024", "29 February 2024", "2024-02-29..2024-03-01"),
        ("31 December 2023", "31 December 2023", "2023-12-31..2024-01-01"),
        ("the May 12 interview", "May 12", "*-05-12"),
        ("What happened in May 2023?", "May 2023", "2023-05-01..2023-06-01"),
        ("the December, 2023 report", "December, 2023", "2023-12-01..2024-01-01"),
        ("invoices of 2023-05", "2023-05", "2023-05-01..2023-06-01"),
        ("the first half of September 2022", "September 2022", "2022-09-01..2022-10-01"),
        ("What happened in March?", "March", "*-03"),
        ("in late May?", "May", "*-05"),
        ("the July meeting", "July", "*-07"),
        ("How often in 2023?", "2023", "2023-01-01..2024-01-01"),
        ("in early 2023, when", "2023", "2023-01-01..2024-01-01"),
        ("8-12 May 2023", "8-12 May 2023", "2023-05-08..2023-05-13"),
        ("between 8 and 12 May 2023", "between 8 and 12 May 2023", "2023-05-08..2023-05-13"),
        ("May 8 to 12, 2023", "May 8 to 12, 2023", "2023-05-08..2023-05-13"),
        ("between March and May 2023", "between March and May 2023", "2023-03-01..2023-06-01"),
        ("from November to January 2023", "from November to January 2023", "2022-11-01..2023-02-01"),
        ("between 2020 and 2022", "between 2020 and 2022", "2020-01-01..2023-01-01"),
        ("from May 3, 2022 to 7 June 2022", "from May 3, 2022 to 7 June 2022", "2022-05-03..2022-06-08"),
        ("between 28 December 2022 and 3 January", "between 28 December 2022 and 3 January", "2022-12-28..2023-01-04"),
        ("between 28 December and 3 January 2023", "between 28 December and 3 January 2023", "2022-12-28..2023-01-04"),
        ("before June 2023", "before June 2023", "..2023-06-01"),
        ("until May 2023", "until May 2023", "..2023-06-01"),
        ("after May 3, 2023", "after May 3, 2023", "2023-05-04.."),
        ("since March", "since March", "2023-03-01.."),
        ("since July", "since July", "2022-07-01.."),
        ("the week before August 3, 2023", "the week before August 3, 2023", "2023-07-27..2023-08-03"),
        ("the week after August 3, 2023", "the week after August 3, 2023", "2023-08-04..2023-08-11"),
        ("two weeks before August 11, 2023", "two weeks before August 11, 2023", "2023-07-28..2023-07-29"),
        ("the month before March 2023", "the month before March 2023", "2023-02-01..2023-03-01"),
        ("the Sunday before October 25, 2022", "the Sunday before October 25, 2022", "2022-10-23..2022-10-24"),
        ("last weekend before April 10, 2023", "last weekend before April 10, 2023", "2023-04-08..2023-04-10"),
    ],
)
def test_a_written_time_means_its_days(text: str, phrase: str, period: str):
    assert named(text) == {phrase: [period]}


@pytest.mark.parametrize(
    ("text", "phrase", "period"),
    [
        ("what did I do yesterday?", "yesterday", "2023-06-14..2023-06-15"),
        ("the day before yesterday", "the day before yesterday", "2023-06-13..2023-06-14"),
        ("Today", "Today", "2023-06-15..2023-06-16"),
        ("what is due tomorrow", "tomorrow", "2023-06-16..2023-06-17"),
        ("who called last night", "last night", "2023-06-14..2023-06-15"),
        ("what did I do on Monday", "Monday", "2023-06-12..2023-06-13"),
        ("what did I do on Thursday", "Thursday", "2023-06-08..2023-06-09"),
        ("what did I do last Friday", "last Friday", "2023-06-09..2023-06-10"),
        ("what is on next Friday", "next Friday", "2023-06-16..2023-06-17"),
        ("since Monday", "since Monday", "2023-06-12.."),
        ("last week", "last week", "2023-06-05..2023-06-12"),
        ("this week", "this week", "2023-06-12..2023-06-19"),
        ("last weekend", "last weekend", "2023-06-10..2023-06-12"),
        ("last month", "last month", "2023-05-01..2023-06-01"),
        ("last quarter", "last quarter", "2023-01-01..2023-04-01"),
        ("this year", "this year", "2023-01-01..2024-01-01"),
        ("next year", "next year", "2024-01-01..2025-01-01"),
        ("last May", "last May", "2023-05-01..2023-06-01"),
        ("last June", "last June", "2022-06-01..2022-07-01"),
        ("in the last three weeks", "last three weeks", "2023-05-25..2023-06-16"),
        ("over the past few months", "past few months", "2023-02-15..2023-06-16"),
        ("the past month", "past month", "2023-05-15..2023-06-16"),
        ("last 24 hours", "last 24 hours", "2023-06-14..2023-06-16"),
        ("3 months ago", "3 months ago", "2023-03-01..2023-04-01"),
        ("two days ago", "two days ago", "2023-06-13..2023-06-14"),
        ("a couple of weeks ago", "a couple of weeks ago", "2023-05-29..2023-06-05"),
        ("4 years ago", "4 years ago", "2019-01-01..2020-01-01"),
        ("an hour ago", "an hour ago", "2023-06-15..2023-06-16"),
        ("What did I eat two days before?", "two days before", "2023-06-13..2023-06-14"),
        ("two days before yesterday", "two days before yesterday", "2023-06-12..2023-06-13"),
    ],
)
def test_a_relative_time_is_relative_to_now(text: str, phrase: str, period: str):
    assert named(text) == {phrase: [period]}


@pytest.mark.parametrize(
    ("now", "text", "period"),
    [
        ("2024-01-01T00:00+00:00", "yesterday", "2023-12-31..2024-01-01"),
        ("2024-01-01T00:00+00:00", "last week", "2023-12-25..2024-01-01"),
        ("2024-01-01T00:00+00:00", "last month", "2023-12-01..2024-01-01"),
        ("2024-01-01T00:00+00:00", "last quarter", "2023-10-01..2024-01-01"),
        ("2023-06-11T23:59+00:00", "this week", "2023-06-05..2023-06-12"),
        ("2023-06-11T23:59+00:00", "last weekend", "2023-06-03..2023-06-05"),
        ("2023-06-12T00:00+00:00", "last weekend", "2023-06-10..2023-06-12"),
        ("2023-06-12T00:00+00:00", "on Monday", "2023-06-05..2023-06-06"),
        ("2024-02-29T12:00+00:00", "a year ago", "2023-01-01..2024-01-01"),
        ("2024-03-31T12:00+00:00", "1 month ago", "2024-02-01..2024-03-01"),
        ("2024-03-01T12:00+00:00", "yesterday", "2024-02-29..2024-03-01"),
        ("2023-06-15T01:30+02:00", "yesterday", "2023-06-13..2023-06-14"),
        ("2023-06-14T23:30-05:00", "today", "2023-06-15..2023-06-16"),
    ],
)
def test_days_are_those_of_utc_and_weeks_begin_on_monday(now: str, text: str, period: str):
    assert named(text, datetime.fromisoformat(now)) == {text.removeprefix("on "): [period]}


@pytest.mark.parametrize(
    "text",
    [
        "May I ask what this may mean?",
        "what may be done when soldiers march",
        "flutter obtained in freon-12 may be interpreted",
        "What did June say to April, and where is August?",
        "an august gathering, mar the surface, a jan van eyck",
        "what happened after the accident",
        "two days before the wedding",
        "how many days are there between the first and the last",
        "a 5 days old child, two years of age",
        "How many weeks passed between Maria adopting Coco and Shadow?",
        "the last 3 messages, the last week of school",
        "recently, lately, the other day, during the summer",
        "version 2.1, section 3.1, mach 2 to 5, 12:30, room 2023, 20230508",
        "in 2000 units of 1999 grams",
        "recent data on shock-induced boundary-layer separation . previous papers",
        "上周我去了哪里",
        "",
    ],
)
def test_other_words_are_not_recognised_as_times(text: str):
    assert time_intent(text, NOW) is None


def test_a_range_of_months_without_a_year_is_yearly():
    assert named("between November and February") == {"between November and February": ["*-11", "*-12", "*-01", "*-02"]}


def test_an_ambiguous_numeric_date_has_both_readings():
    assert named("paid on 5/8/2023") == {"5/8/2023": ["2023-05-08..2023-05-09", "2023-08-05..2023-08-06"]}
    assert named("paid on 5/18/2023") == {"5/18/2023": ["2023-05-18..2023-05-19"]}


def test_a_day_that_does_not_exist_is_read_as_its_month():
    assert named("29 February 2023") == {"February 2023": ["2023-02-01..2023-03-01"]}


def test_a_relative_time_next_to_a_written_one_is_ignored():
    assert list(named("What did she finish last Friday, on 23 January 2022?")) == ["23 January 2022"]


def test_every_written_time_of_a_query_is_recognised():
    assert list(named("March 15, 2024 and April 2, 2024")) == ["March 15, 2024", "April 2, 2024"]


# --- what is boosted ------------------------------------------------------------------------------------------------


def test_a_month_is_boosted_in_its_year_or_else_in_every_year():
    rows = at("2022-05-31T23:59:59.999999", "2023-04-30T23:59:59", "2023-05-01", "2023-05-31T23:59:59", "2023-06-01")
    assert intent_of("in May 2023").within(rows).tolist() == [0, 0, 1, 1, 0]
    assert intent_of("in May").within(rows).tolist() == [1, 0, 1, 1, 0]


def test_a_written_day_boosts_its_month_and_nearby_days():
    intent = intent_of("on May 30, 2023")
    rows = at("2023-05-28", "2023-05-29", "2023-05-30T23:00", "2023-06-03", "2023-06-09", "2023-06-10")
    assert intent.within(rows).tolist() == [1, 1, 1, 0, 0, 0]
    distances = [np.inf, 1, 0, 4, 10, np.inf]
    assert intent.near_to(rows) == pytest.approx(np.exp(-np.array(distances) / 4))


def test_a_yearly_day_is_near_across_the_end_of_the_year():
    rows = at("2021-12-30", "2021-12-31", "2022-01-02", "2022-06-01", "2023-01-09", "2023-01-11")
    distances = [1, 0, 2, np.inf, 9, np.inf]
    assert intent_of("on 31 December").near_to(rows) == pytest.approx(np.exp(-np.array(distances) / 4))


def test_a_yearly_leap_day_is_near_only_in_leap_years():
    rows = at("2023-02-28", "2023-03-01", "2024-02-29", "2024-03-01")
    distances = [np.inf, np.inf, 0, 1]
    assert intent_of("on 29 February").near_to(rows) == pytest.approx(np.exp(-np.array(distances) / 4))


def test_a_short_relative_period_is_widened():
    rows = at("2023-06-12", "2023-06-13", "2023-06-14", "2023-06-24", "2023-06-25")
    assert intent_of("who called yesterday").within(rows).tolist() == [0, 1, 1, 1, 0]


def test_a_time_relative_to_a_day_is_near_to_both():
    intent = intent_of("two weeks before August 11, 2023")
    assert intent.near_to(at("2023-07-28", "2023-08-05", "2023-08-11")).tolist() == pytest.approx([1, np.exp(-2), 1])


def test_without_rows_there_are_no_values():
    intent = intent_of("on 8 May")
    assert intent.within(at()).shape == intent.near_to(at()).shape == (0,)


periods = st.one_of(
    st.builds(Yearly, st.integers(1, 12)),
    st.dates(date(1900, 1, 1), date(2100, 1, 1)).flatmap(
        lambda first: st.integers(1, 900).map(lambda length: Days(first, first + timedelta(days=length)))
    ),
    st.dates().map(lambda first: Days(first=first)),
    st.dates().map(lambda end: Days(end=end)),
)
single_days = st.one_of(
    st.dates(date(1900, 1, 1), date(2100, 1, 1)).map(lambda day: Days(day, day + timedelta(days=1))),
    st.dates(date(2000, 1, 1), date(2000, 12, 31)).map(lambda day: Yearly(day.month, day.day)),
)
rows = st.lists(st.datetimes(datetime(1890, 1, 1), datetime(2110, 1, 1)), max_size=40)  # noqa: DTZ001 - made UTC below


@given(named_periods=st.lists(periods, max_size=3), named_days=st.lists(single_days, max_size=3), moments=rows)
def test_the_arrays_equal_a_slow_calendar_calculation(
    named_periods: list[Period], named_days: list[Period], moments: list[datetime]
):
    intent = TimeIntent((), tuple(named_periods), tuple(named_days))
    occurred_us = np.array([to_us(moment.replace(tzinfo=UTC)) for moment in moments], dtype=np.int64)
    days = [moment.date() for moment in moments]
    assert intent.within(occurred_us).tolist() == [times.within(named_periods, day) for day in days]
    assert intent.near_to(occurred_us) == pytest.approx([times.near_to(named_days, day) for day in days])


# --- what filters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("What did I tell you yesterday?", "2023-06-14T00:00:00", "2023-06-14T23:59:59.999999"),
        ("what did we talk about last week", "2023-06-05T00:00:00", "2023-06-11T23:59:59.999999"),
        ("what have we discussed since Monday", "2023-06-12T00:00:00", None),
        ("What did you say in March?", "2023-03-01T00:00:00", "2023-03-31T23:59:59.999999"),
        ("what did I say earlier today", "2023-06-15T00:00:00", "2023-06-15T23:59:59.999999"),
        ("what did you ask me on 2023-05-08", "2023-05-08T00:00:00", "2023-05-08T23:59:59.999999"),
        ("messages from last week about billing", "2023-06-05T00:00:00", "2023-06-11T23:59:59.999999"),
        ("messages before June 2023", None, "2023-05-31T23:59:59.999999"),
        ("notes from between 3 and 7 May 2023", "2023-05-03T00:00:00", "2023-05-07T23:59:59.999999"),
        ("our conversation on 8 May", "2023-05-08T00:00:00", "2023-05-08T23:59:59.999999"),
        ("the chat we had last Tuesday", "2023-06-13T00:00:00", "2023-06-13T23:59:59.999999"),
        ("last week's messages", "2023-06-05T00:00:00", "2023-06-11T23:59:59.999999"),
        ("what was said yesterday", "2023-06-14T00:00:00", "2023-06-14T23:59:59.999999"),
    ],
)
def test_a_query_for_when_something_was_said_is_filtered(text: str, since: str | None, until: str | None):
    query, use = intent_of(text).applied_to(SearchQuery(text))
    assert query.filters.since == (since and datetime.fromisoformat(since).replace(tzinfo=UTC))
    assert query.filters.until == (until and datetime.fromisoformat(until).replace(tzinfo=UTC))
    assert use.filtered == TimeSpan(query.filters.since, query.filters.until)


@pytest.mark.parametrize(
    "text",
    [
        "What did I do yesterday?",
        "What did I tell you about my trip in May?",
        "What did the doctor say yesterday?",
        "What did Maria mention on 31 July, 2023?",
        "conversations with Anna last week",
        "memories of May 2022",
        "what did I say on 3 May 2023 and on 5 May 2023",
        "the message of 5/8/2023",
        "what did you say you did last week",
    ],
)
def test_any_other_time_is_a_boost_and_not_a_filter(text: str):
    query, use = intent_of(text).applied_to(SearchQuery(text))
    assert use.boosted
    assert (query, use.filtered) == (SearchQuery(text), None)


@pytest.mark.parametrize("own", [Filters(since=NOW), Filters(until=NOW)])
def test_a_time_filter_of_the_caller_takes_precedence(own: Filters):
    text = "What did I tell you yesterday?"
    query, use = intent_of(text).applied_to(SearchQuery(text, filters=own))
    assert (query.filters, use.filtered) == (own, None)


@pytest.mark.parametrize("text", ["the latest news on billing", "Most recent deploy?", "which is the newest key"])
def test_a_query_for_the_latest_is_recognised(text: str):
    query, use = intent_of(text).applied_to(SearchQuery(text))
    assert (query.weights.recency, use.recency, use.boosted) == (0.2, 0.2, ())


def test_a_recency_weight_of_the_caller_takes_precedence():
    query, use = intent_of("the latest").applied_to(SearchQuery("the latest", weights=Weights(recency=0.7)))
    assert (query.weights.recency, use.recency) == (0.7, None)


def test_a_named_time_takes_precedence_over_latest():
    assert not intent_of("their latest project in July 2023").latest


# --- any text -------------------------------------------------------------------------------------------------------

texts = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join),
    st.sampled_from(WORDS).map(lambda word: f"{word} " * 2_000),
)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
nows = st.one_of(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=zones),  # noqa: DTZ001 - the zones are drawn
    st.sampled_from([datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)]),
)


@settings(max_examples=400, deadline=None)
@given(text=texts, now=nows)
def test_no_text_at_no_time_raises(text: str, now: datetime):
    intent = time_intent(text, now)
    if intent is not None:
        occurred_us = at("0001-01-01", "2023-05-08", "9999-12-31")
        assert set(intent.within(occurred_us)) <= {0.0, 1.0}
        assert ((intent.near_to(occurred_us) >= 0) & (intent.near_to(occurred_us) <= 1)).all()
        query, _ = intent.applied_to(SearchQuery(text))
        since, until = query.filters.since, query.filters.until
        assert since is None or until is None or since < until
        assert all(phrase.strip() == phrase and phrase for phrase in intent.phrases)


def test_repeated_words_are_analysed_in_linear_time():
    for word in WORDS:
        assert_linear(lambda text: time_intent(text, NOW), (f"{word} " * MAX_READ_CHARS)[:MAX_READ_CHARS])


def test_only_the_start_of_a_long_text_is_analysed():
    assert time_intent("x" * MAX_READ_CHARS + " yesterday", NOW) is None


# --- who asks for a time ------------------------------------------------------------------------------------------


def day(number: int, month: int = 6) -> datetime:
    return datetime(2023, month, number, tzinfo=UTC)


INSTANT = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "since", "until", "words"),
    [
        ("what did I say yesterday?", day(14), day(15) - INSTANT, None),
        ("in May", day(1, 5), day(1) - INSTANT, None),
        ("the boat since 3 June 2023", day(3), None, "the boat "),
        ("between 3 June 2023 and 5 June 2023", day(3), day(6) - INSTANT, None),
        ("on 3 June 2023 or on 10 June 2023", day(3), day(11) - INSTANT, "on or on"),
        ("the latest messages", None, None, None),
        ("the latest of the boat", None, None, "the  of the boat"),
    ],
)
def test_a_named_time_spans_its_first_to_its_last_day(
    text: str, since: datetime | None, until: datetime | None, words: str | None
):
    found = named_time(text, NOW)
    assert found is not None
    assert (found.span, (found.words or "").split()) == (TimeSpan(since, until), (words or "").split())


def test_a_text_without_a_time_names_none():
    assert named_time("the box of letters", NOW) is None
    assert named_time("yesterday", NOW) == NamedTime(TimeSpan(day(14), day(15) - INSTANT), None)
