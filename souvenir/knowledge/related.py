"""Related concepts over several steps: a best-first search for the strongest paths.

The strength of a step is that of the co-occurrence or of the stated relation, whichever is larger; that of a path is
the product of its steps. The number of expanded concepts is bounded, and so are the steps from each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from heapq import heappop, heappush
from typing import NamedTuple

from souvenir.knowledge.claim_types import CO_OCCURS
from souvenir.knowledge.concept_ranking import strength
from souvenir.store.graph import claims
from souvenir.store.graph import concepts as rows
from souvenir.store.graph.concepts import Concept
from souvenir.store.graph.mentions import month_of
from souvenir.store.privacy import Hidden
from souvenir.store.sql import Connection

MAX_DEPTH = 5
FAN_OUT = 24
"""Number of strongest steps from one concept; more from the start, if more are requested."""

MAX_FOLLOWED = 12
"""Maximum number of concepts, in addition to the first, whose own steps are followed."""

MAX_OWNERS_FOLLOWED = 1_000
"""Concepts with more mentions are not expanded: they are related to everything."""

CANDIDATES = 256
"""Maximum number of concepts whose association with one is computed: those that co-occur with it most often."""

CANDIDATES_FOLLOWED = 48
"""As `CANDIDATES`, for the steps from a concept other than the first."""


class PathStep(NamedTuple):
    """A step from one concept to another.

    :param together: Number of messages and memories that mention both. :param outgoing: True if the relation leads from
        the first to the second; a relation by co-occurrence is symmetric.
    """

    to_id: int
    strength: float
    together: int
    relationship_type: str
    outgoing: bool = True


@dataclass(frozen=True, slots=True)
class ReachedConcept:
    """A concept at the end of its strongest path.

    :param strength: Strength of the path. :param path: Names of the concepts in between. Other fields are of the last
        step.
    """

    concept: Concept
    strength: float
    depth: int
    relationship_type: str
    outgoing: bool
    together: int
    path: tuple[str, ...]


class _Path(NamedTuple):
    """Ordered by strength, the strongest first, then by length."""

    weakness: float
    depth: int
    to_id: int
    between: tuple[int, ...]
    last: PathStep


def related(
    connection: Connection,
    namespace_id: int,
    root_id: int,
    hidden: Hidden,
    *,
    depth: int,
    limit: int,
    now: datetime,
) -> list[ReachedConcept]:
    """Return the concepts at the ends of the strongest paths of at most `depth` steps, strongest first.

    :param hidden: Texts that no stated relation, description and role is taken from.
    """

    @cache
    def steps(from_id: int) -> Sequence[PathStep]:
        if from_id == root_id:
            wanted = max(limit, FAN_OUT)
            return _steps(connection, namespace_id, from_id, hidden, limit=wanted, candidates=CANDIDATES, now=now)
        owners = rows.owners_of(connection, [from_id])[from_id]
        if owners > MAX_OWNERS_FOLLOWED:
            return ()
        return _steps(connection, namespace_id, from_id, hidden, limit=FAN_OUT, candidates=CANDIDATES_FOLLOWED, now=now)

    found: dict[int, _Path] = {}
    heap: list[_Path] = []
    # The depth at which a concept was expanded; from a smaller depth its steps lead further.
    followed = {root_id: 0}
    for step in steps(root_id):
        heappush(heap, _Path(-step.strength, 1, step.to_id, (), step))
    while heap and len(found) < limit:
        path = heappop(heap)
        found.setdefault(path.to_id, path)
        if path.depth >= min(depth, followed.get(path.to_id, MAX_DEPTH)) or len(followed) > MAX_FOLLOWED:
            continue
        following = steps(path.to_id)
        if following:
            followed[path.to_id] = path.depth
        for step in following:
            if step.to_id == root_id:
                continue
            if followed.get(step.to_id, MAX_DEPTH) > path.depth + 1 or step.to_id not in found:
                longer = (*path.between, path.to_id)
                heappush(heap, _Path(path.weakness * step.strength, path.depth + 1, step.to_id, longer, step))
    return list(_shown(connection, namespace_id, list(found.values()), hidden))


def _shown(
    connection: Connection, namespace_id: int, paths: Sequence[_Path], hidden: Hidden
) -> Iterator[ReachedConcept]:
    wanted = {path.to_id for path in paths} | {id_ for path in paths for id_ in path.between}
    shown = rows.by_ids(connection, namespace_id, wanted, hidden)
    for path in paths:
        if path.to_id not in shown or not all(id_ in shown for id_ in path.between):
            continue
        last, between = path.last, tuple(shown[id_].name for id_ in path.between)
        yield ReachedConcept(
            shown[path.to_id],
            -path.weakness,
            path.depth,
            last.relationship_type,
            last.outgoing,
            last.together,
            between,
        )


def _steps(
    connection: Connection,
    namespace_id: int,
    from_id: int,
    hidden: Hidden,
    *,
    limit: int,
    candidates: int,
    now: datetime,
) -> Sequence[PathStep]:
    """Return the strongest steps from a concept: stated relations and co-occurrences."""
    found = neighbours(connection, namespace_id, from_id, limit=limit, now=now, candidates=candidates)
    counted = {one.to_id: one for one in found}
    members = {*rows.members(connection, from_id)}
    stated = claims.relations(connection, members, hidden)
    root_of = rows.roots(connection, {id_ for one in stated for id_ in one.ends})
    # Reversed, so that the newest claim of a caller is applied last and wins.
    for one in reversed(stated):
        outgoing = one.concept_id in members
        to_id = root_of[one.ends[outgoing]]
        if to_id != from_id:
            both = counted.get(to_id, PathStep(to_id, 0.0, 0, CO_OCCURS))
            strongest = max(both.strength, one.confidence)
            counted[to_id] = PathStep(to_id, strongest, both.together, one.text, outgoing)
    return sorted(counted.values(), key=lambda step: (-step.strength, -step.together, step.to_id))[:limit]


def neighbours(
    connection: Connection,
    namespace_id: int,
    root_id: int,
    *,
    limit: int,
    now: datetime,
    candidates: int = CANDIDATES,
) -> list[PathStep]:
    """Return the concepts most strongly related to a concept by co-occurrence beyond chance, strongest first.

    :param now: Older co-occurrences count less.
    :param candidates: How many concepts are considered: those that co-occur with it most often.
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
            found.append(PathStep(other, belongs, by_month.total(), CO_OCCURS))
    return sorted(found, key=lambda one: (-one.strength, -one.together, one.to_id))[:limit]
