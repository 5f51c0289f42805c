"""What follows from the counts of concepts by arithmetic: what a name means, what tells most, what belongs together.

Nothing here writes, and each function takes a connection inside a transaction. Each reads a bounded number of rows but
for one pass over the neighbours of the concept that is asked for.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from heapq import nlargest
from typing import NamedTuple

import apsw

from souvenir.concepts.extraction import mentioned
from souvenir.concepts.spelling import key_of
from souvenir.concepts.weights import rarity, strength
from souvenir.store import concepts as rows
from souvenir.store.mentions import known_keys, month_of

CANDIDATES = 256
"""Concepts, at most, whose association with one is weighed: those that are mentioned with it most often."""

MESSAGES_LOOKED_AT = 1_000
"""Of a time, the latest, for what may be mentioned most in it."""

MAY_BE_COMMON = 64
"""Concepts that more than 1 in e of all texts mention: each mentions 16 at most, so there are 43 of these at most.
Below that, what is mentioned more is also the more telling (x log(1/x) rises up to 1/e)."""

MAX_OFFSET = 2**40
"""More than there can be concepts."""

SHORT_HISTORY = 16
"""Texts that are counted beside those that there are, so that of a few what all mention is no less than the rest."""

_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 12, 31, tzinfo=UTC)


class Neighbour(NamedTuple):
    """What is mentioned with a concept: how strongly it belongs to it, in how many messages and memories."""

    concept_id: int
    strength: float
    together: int


def possible_keys(name: str) -> list[str]:
    """The keys of which a concept that is called so may have one, likeliest first."""
    read = mentioned(name)
    return [key_of(name), *(one.key for one in read if len(read) == 1)]


def named(connection: apsw.Connection, namespace_id: int, name: str) -> int | None:
    """What is called so, however it is written: what somebody stated goes before what stands in texts."""
    wanted = key_of(name)
    if not wanted:
        return None
    for text, concept_id in rows.stated_names(connection, namespace_id):
        if key_of(text) == wanted:
            return rows.roots(connection, [concept_id])[concept_id]
    keys = possible_keys(name)
    ids = known_keys(connection, namespace_id, keys)
    found = next((ids[key] for key in keys if key in ids), None)
    return None if found is None else rows.roots(connection, [found])[found]


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
    """What belongs most to a concept, strongest first: by how much more often than by chance both are mentioned.

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
