"""The stored memories that are shown beside facts: the heads of both arms in turn, so that neither arm's hits are lost.

What the model sees is numbers from 1; which memory and which version of it a number is, only we know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from memory_engine import MemoryEngine
from souvenir.decisions import Seen
from souvenir.extraction.pacing import paced
from souvenir.store import extractions, reads
from souvenir.types import ArmCandidate, Memory, PassageKind, Scope, SearchQuery

CANDIDATES_PER_FACT = 5


@dataclass(frozen=True, slots=True)
class Shown:
    """Memories by the number that the model sees, and which of them are candidates of which fact.

    :param of_facts: By the fact's ordinal, best first.
    """

    memories: Mapping[int, Memory]
    versions: Mapping[int, int]
    of_facts: Mapping[int, tuple[int, ...]]

    def seen(self, number: int) -> Seen:
        memory_id = self.memories[number].id
        return Seen(memory_id, self.versions[memory_id])

    def seen_beside(self, ordinal: int) -> tuple[Seen, ...]:
        return tuple(self.seen(number) for number in self.of_facts[ordinal])


def candidates(engine: MemoryEngine, scope: Scope, texts: Mapping[int, str]) -> Shown:
    """:param texts: Of facts, by their ordinals."""
    found = {ordinal: _nearest(engine, scope, text) for ordinal, text in texts.items()}
    wanted = list(dict.fromkeys(chain.from_iterable(found.values())))
    with engine.namespace(scope) as (connection, namespace):
        memories = {} if namespace is None else reads.memories(connection, namespace, wanted)
        versions = {} if namespace is None else extractions.versions(connection, namespace, memories)
    living = [memory_id for memory_id in wanted if memory_id in memories and not memories[memory_id].archived]
    numbers = {memory_id: number for number, memory_id in enumerate(living, start=1)}
    return Shown(
        {number: memories[memory_id] for memory_id, number in numbers.items()},
        versions,
        {ordinal: tuple(numbers[one] for one in ids if one in numbers) for ordinal, ids in found.items()},
    )


def _nearest(engine: MemoryEngine, scope: Scope, text: str) -> list[int]:
    query = SearchQuery(text, top_k=CANDIDATES_PER_FACT, auto_intent=False)
    with paced():
        found = engine.recall(scope, PassageKind.MEMORY, query)
    heads = () if found is None else _in_turn(*found.arms(CANDIDATES_PER_FACT))
    return list(dict.fromkeys(one.memory_id for one in heads))[:CANDIDATES_PER_FACT]


def _in_turn(*arms: Sequence[ArmCandidate]) -> Iterator[ArmCandidate]:
    for rank in zip_longest(*arms):
        yield from (one for one in rank if one is not None)
