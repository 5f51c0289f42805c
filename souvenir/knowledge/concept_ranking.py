"""How telling concepts are, and how strongly they are related, by counts of what mentions them.

`rarity` and `strength` are pure functions of counts. The others take a connection inside a transaction, write nothing
and read a bounded number of rows, except for one pass over the neighbours of the concept that is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from heapq import nlargest
from math import exp, log
from typing import NamedTuple

import apsw

from souvenir.store.graph import concepts as rows
from souvenir.store.graph.mentions import month_of

HALF_LIFE_MONTHS = 12.0
"""After a year without a word of both, a relation counts for half."""

SHRINKAGE = 2.0
"""How many times two concepts must meet for half of their association to be believed (see `strength`)."""

CANDIDATES = 256
"""Concepts, at most, whose association with one is weighed: those that are mentioned with it most often."""

MESSAGES_LOOKED_AT = 1_000
"""Only the latest messages of a period are read to find its candidates."""

MAY_BE_COMMON = 64
"""Concepts that more than 1 in e of all texts mention: each mentions 16 at most, so there are 43 of these at most.
Below that, what is mentioned more is also the more telling (x log(1/x) rises up to 1/e)."""

MAX_OFFSET = 2**40
"""More than there can be concepts."""

SHORT_HISTORY = 16
"""Added to the number of texts (smoothing), so that in a short history a concept of every text does not weigh zero."""

_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 12, 31, tzinfo=UTC)


class Neighbour(NamedTuple):
    """A concept that co-occurs with another: the strength of the relation and the number of shared texts."""

    concept_id: int
    strength: float
    together: int


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


def top(
    connection: apsw.Connection,
    namespace_id: int,
    *,
    limit: int,
    offset: int = 0,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[rows.Concept]:
    """The concepts that tell most of an agent: mentioned often, and not in everything.

    :param since: Counted are the messages and memories from then on; likewise `until`. Then only what the latest
        messages of that time or many of all times mention is looked at.
    """
    enough = min(offset, MAX_OFFSET) + limit + MAY_BE_COMMON
    counted = rows.most_used(connection, namespace_id, limit=enough)
    used = {id_: counted[id_] for id_ in nlargest(enough, counted, key=lambda id_: (counted[id_], id_))}
    total = rows.owners_read(connection, namespace_id) + SHORT_HISTORY
    telling = {id_: rarity(owners, total) for id_, owners in used.items()}
    if since is not None or until is not None:
        start, end = since or _EARLIEST, until or _LATEST
        used = _used_between(connection, namespace_id, list(used), start, end)
        owners = rows.owners_of(connection, used)
        telling = {id_: rarity(owners[id_], total) for id_ in used}
    ordered = sorted(used, key=lambda id_: (-used[id_] * telling[id_], -used[id_], -id_))
    chosen = ordered[offset : offset + limit]
    shown = rows.by_ids(connection, namespace_id, chosen)
    return [shown[id_] for id_ in chosen]


def _used_between(
    connection: apsw.Connection, namespace_id: int, used: list[int], since: datetime, until: datetime
) -> dict[int, int]:
    recent = rows.mentioned_between(
        connection, namespace_id, since, until, messages=MESSAGES_LOOKED_AT, limit=2 * len(used)
    )
    found = {*used, *rows.roots(connection, recent).values()}
    members = rows.spellings(connection, found)
    counts = rows.counts_between(connection, members, since, until)
    counted = Counter[int]()
    for id_, root in members.items():
        counted[root] += counts[id_]
    return dict(+counted)


def neighbours(
    connection: apsw.Connection,
    namespace_id: int,
    root_id: int,
    *,
    limit: int,
    now: datetime,
    candidates: int = CANDIDATES,
) -> list[Neighbour]:
    """The concepts most strongly related to a concept by co-occurrence beyond chance, strongest first.

    :param now: What was long before that counts for less.
    :param candidates: How many concepts are looked at, those that are mentioned with it most often.
    """
    months = rows.together(connection, rows.members(connection, root_id), limit=candidates)
    root_of = rows.roots(connection, months)
    owners = rows.owners_of(connection, {root_id, *root_of.values()})
    merged: dict[int, Counter[int]] = {}
    for other, by_month in months.items():
        root = root_of.get(other, root_id)
        if root != root_id:
            merged.setdefault(root, Counter()).update(by_month)
    total, this_month = rows.owners_read(connection, namespace_id), month_of(now)
    found = []
    for other, by_month in merged.items():
        belongs = strength(by_month, owners[root_id], owners[other], total, this_month)
        if belongs > 0:
            found.append(Neighbour(other, belongs, by_month.total()))
    return sorted(found, key=lambda one: (-one.strength, -one.together, one.concept_id))[:limit]
