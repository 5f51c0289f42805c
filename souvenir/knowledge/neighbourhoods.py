"""The concepts that co-occur with a concept, by month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
"""Number of neighbours that are listed for each month."""


class Month(NamedTuple):
    """:param month: Months since the year 0. :param owners: Number of messages and memories that mention the concept.

    :param neighbours: The most frequent co-occurring concepts, and their numbers.
    """

    month: int
    owners: int
    neighbours: Sequence[tuple[Concept, int]]


@dataclass(frozen=True, slots=True)
class History:
    concept: Concept
    months: Sequence[Month]


class Neighbourhoods:
    """Thread-safe."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def history(self, scope: Scope, concept_id: int) -> History:
        """Return the months in which a concept is mentioned, oldest first.

        :raises ConceptNotFound: If there is no such concept.
        """
        with self._engine.namespace(scope) as (connection, _):
            agent = agents.require_agent(connection, scope)
            concept = require_concept(connection, agent.namespace_id, concept_id)
            members = concepts.members(connection, concept.id)
            spelt = activity.around(connection, members)
            root_of = concepts.roots(connection, {id_ for of_month in spelt.values() for id_ in of_month})
            around = _around(concept.id, spelt, root_of)
            owners = Counter(month_of(from_us(at)) for at in activity.mention_times(connection, members))
            best = {month: _most(around.get(month, Counter())) for month in sorted(owners)}
            shown = concepts.by_ids(connection, agent.namespace_id, {id_ for of in best.values() for id_, _ in of})
            months = [
                Month(month, owners[month], [(shown[id_], together) for id_, together in of_month if id_ in shown])
                for month, of_month in best.items()
            ]
            return History(concept, months)


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
