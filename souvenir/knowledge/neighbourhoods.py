"""Changes of a concept's co-occurring concepts: by month, and between two periods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from souvenir.core.timestamps import from_us
from souvenir.core.types import Scope
from souvenir.knowledge.concept_lookup import require_concept
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import activity, concepts
from souvenir.store.graph.concepts import Concept
from souvenir.store.graph.mentions import month_of
from souvenir.store.messages import agents

NEIGHBOURS = 10
"""Number of neighbours that are listed for each month and for each kind of change."""

CHANGED_BY = 1.5
"""Minimum ratio of the shares for a neighbour to count as stronger, or its inverse as weaker."""

SEEN_AGAIN = 2
"""Minimum number of co-occurrences of a gained or lost neighbour."""


class Month(NamedTuple):
    """:param month: Months since the year 0. :param owners: Number of messages and memories that mention the concept.

    :param neighbours: The most frequent co-occurring concepts, and their numbers.
    """

    month: int
    owners: int
    neighbours: Sequence[tuple[Concept, int]]


class Shift(NamedTuple):
    """The number of co-occurrences of a neighbour with a concept before the split and after it."""

    neighbour: Concept
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class NeighbourChanges:
    """Changes between two periods, before a month and from it on, by shares of the texts that mention the concept.

    :param month: None if the concept is mentioned in fewer than two months.
    """

    month: int | None
    gained: Sequence[Shift]
    lost: Sequence[Shift]
    stronger: Sequence[Shift]
    weaker: Sequence[Shift]


@dataclass(frozen=True, slots=True)
class History:
    concept: Concept
    months: Sequence[Month]
    changed: NeighbourChanges


class Neighbourhoods:
    """Thread-safe."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def history(
        self, scope: Scope, concept_id: int, since: datetime, until: datetime, split: datetime | None = None
    ) -> History:
        """Return the months in which it is mentioned, oldest first, as whole months including the bounds.

        :param split: A time in the first month of the later period; None for the middle month.
        :raises ConceptNotFound: If there is no such concept.
        """
        with self._engine.namespace(scope) as (connection, _):
            agent = agents.require_agent(connection, scope)
            concept = require_concept(connection, agent.namespace_id, concept_id)
            members = concepts.members(connection, concept.id)
            first, last = month_of(since), month_of(until)
            spelt = activity.around(connection, members, first, last)
            root_of = concepts.roots(connection, {id_ for of_month in spelt.values() for id_ in of_month})
            around = _around(concept.id, spelt, root_of)
            owners = Counter(month_of(from_us(at)) for at in activity.mention_times(connection, members))
            months = {month: owners[month] for month in sorted(owners) if first <= month <= last}
            middle = sorted(months)[len(months) // 2] if len(months) > 1 else None
            found = _Found(around, months, middle if split is None else month_of(split))
            shown = concepts.by_ids(connection, agent.namespace_id, found.named())
            return found.history(concept, shown)


class _Change(NamedTuple):
    """A change, with the neighbour's id."""

    neighbour: int
    before: int
    after: int


class _Found:
    """The evaluated counts, by ids.

    :param around: Co-occurrences by month and concept. :param owners: Mentions of the concept itself by month.
    """

    def __init__(self, around: Mapping[int, Counter[int]], owners: Mapping[int, int], split: int | None) -> None:
        self._owners, self._split = owners, split
        self._best = {month: _most(around.get(month, Counter())) for month in owners}
        self._changes = _changes(around, owners, split)

    def named(self) -> set[int]:
        changed = {one.neighbour for kind in self._changes.values() for one in kind}
        return changed | {id_ for best in self._best.values() for id_, _ in best}

    def history(self, concept: Concept, shown: Mapping[int, Concept]) -> History:
        months = [
            Month(month, owners, [(shown[id_], together) for id_, together in self._best[month] if id_ in shown])
            for month, owners in self._owners.items()
        ]
        shifts = {
            kind: [Shift(shown[one.neighbour], one.before, one.after) for one in changes if one.neighbour in shown]
            for kind, changes in self._changes.items()
        }
        return History(concept, months, NeighbourChanges(self._split, **shifts))


def _around(root: int, spelt: Mapping[int, Counter[int]], root_of: Mapping[int, int]) -> dict[int, Counter[int]]:
    """Map the counts to root concepts."""
    found: dict[int, Counter[int]] = {}
    for month, counted in spelt.items():
        found[month] = Counter()
        for id_, owners in counted.items():
            if root_of.get(id_, root) != root:
                found[month][root_of[id_]] += owners
    return found


def _most(counted: Counter[int]) -> list[tuple[int, int]]:
    return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:NEIGHBOURS]


def _changes(
    around: Mapping[int, Counter[int]], owners: Mapping[int, int], split: int | None
) -> dict[str, list[_Change]]:
    """Return the changes of each kind, largest first."""
    changes: dict[str, list[_Change]] = {"gained": [], "lost": [], "stronger": [], "weaker": []}
    if split is None:
        return changes
    before, after = Counter[int](), Counter[int]()
    for month, counted in around.items():
        (before if month < split else after).update(counted)
    of_before = sum(count for month, count in owners.items() if month < split)
    of_after = sum(count for month, count in owners.items() if month >= split)
    for id_ in before.keys() | after.keys():
        one = _Change(id_, before[id_], after[id_])
        kind = _kind(one, of_before, of_after)
        if kind is not None:
            changes[kind].append(one)
    return {
        kind: sorted(found, key=lambda one: (-max(one.before, one.after), one.neighbour))[:NEIGHBOURS]
        for kind, found in changes.items()
    }


def _kind(one: _Change, of_before: int, of_after: int) -> str | None:
    if not of_before or not of_after or max(one.before, one.after) < SEEN_AGAIN:
        return None
    if not one.before:
        return "gained"
    if not one.after:
        return "lost"
    # Compare shares of the texts that mention the concept, without a division.
    before, after = one.before * of_after, one.after * of_before
    if after >= CHANGED_BY * before:
        return "stronger"
    return "weaker" if before >= CHANGED_BY * after else None
