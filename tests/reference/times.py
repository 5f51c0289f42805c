"""What the times of a question do to one passage, by the calendar: `souvenir.retrieval.time_intent`, slowly.

Which days a question names is read by the service's own function, whose tests have tables of phrases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from souvenir.core.types import SearchQuery
from souvenir.retrieval.time_intent import TimeIntent
from souvenir.retrieval.time_phrases import Days, Period

DAYS_BEFORE, DAYS_AFTER = 1, 10
RECENCY_OF_THE_LATEST = 0.2
DAY = timedelta(days=1)


def within(periods: Sequence[Period], day: date) -> float:
    return float(any(holds(period, day) for period in periods))


def near_to(named: Sequence[Period], day: date) -> float:
    """exp(-days / 4) from the nearest named day, a day before it to ten days after it."""
    around = [day - after * DAY for after in range(-DAYS_BEFORE, DAYS_AFTER + 1)]
    distances = [abs((day - one).days) for one in around if any(is_day(period, one) for period in named)]
    return math.exp(-min(distances) / 4) if distances else 0.0


def holds(period: Period, day: date) -> bool:
    return period.first <= day < period.end if isinstance(period, Days) else day.month == period.month


def is_day(period: Period, day: date) -> bool:
    return period.first == day if isinstance(period, Days) else (period.month, period.day) == (day.month, day.day)


def limited(query: SearchQuery, intent: TimeIntent) -> SearchQuery:
    """With the filter and the recency that the text asks for, where the caller has none."""
    filters, weights = query.filters, query.weights
    if intent.asked is not None and (filters.since, filters.until) == (None, None):
        first, end = intent.asked.first, intent.asked.end
        since = None if first == date.min else midnight(first)
        until = None if end == date.max else midnight(end) - timedelta(microseconds=1)
        filters = replace(filters, since=since, until=until)
    if intent.latest and query.hybrid and weights.recency == 0:
        weights = replace(weights, recency=RECENCY_OF_THE_LATEST)
    return replace(query, filters=filters, weights=weights)


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
