"""How telling a concept is, and how strongly two belong together: pure functions of counts."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log

HALF_LIFE_MONTHS = 12.0
"""After a year without a word of both, a relation counts for half."""

SHRINKAGE = 2.0
"""How many times two concepts must meet for half of their association to be believed (see `strength`)."""


def rarity(owners: int, total: int) -> float:
    """How rare a concept is in an agent's history, in [0, 1]: inverse document frequency, normalised.

    ``log(total / owners) / log(total)`` (Spärck Jones 1972): 1 for what is mentioned once, 0
    for what is always mentioned.

    :param owners: How many messages and memories mention it.
    :param total: How many were read.
    """
    owners = max(owners, 1)
    if total <= owners:
        return 0.0
    return log(total / owners) / log(total)


def strength(together_by_month: Mapping[int, int], a: int, b: int, total: int, now_month: int) -> float:
    """How strongly two concepts belong together, in [0, 1]; 0 if they meet no more often than by chance.

    Normalised pointwise mutual information, ``log(p(a, b) / (p(a) p(b))) / -log p(a, b)`` (Bouma 2009, eq. 6; below 0
    is 0), times ``n / (n + SHRINKAGE)`` because PMI makes much of what met once (a discount as that of Pantel
    and Lin 2002), times the mean decay ``2 ** (-age / HALF_LIFE_MONTHS)`` of their meetings.

    :param together_by_month: In how many messages and memories of a month both are mentioned.
    :param a: How many mention the one; likewise `b`.
    :param total: How many were read.
    :param now_month: The month to count the age from; what is later has no age.
    """
    together = sum(together_by_month.values())
    if together <= 0 or total <= 0:
        return 0.0
    a, b, total = max(a, together), max(b, together), max(total, a, b)
    association = 1.0 if together == total else log(together * total / (a * b)) / -log(together / total)
    decayed = sum(
        count * exp(-log(2) * max(now_month - month, 0) / HALF_LIFE_MONTHS)
        for month, count in together_by_month.items()
    )
    return min(max(association, 0.0), 1.0) * together / (together + SHRINKAGE) * decayed / together
