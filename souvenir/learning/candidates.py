"""Retrieve the stored memories that the model sees with each fact, and limit the share of a core that a job uses.

Candidates interleave the best hits of both retrieval arms, so that neither dominates. The model sees numbers from 1;
only the service maps a number to a memory and its version. A job pauses as long as it worked, and embeds a few texts at
a time: its model calls take seconds, while a concurrent search waits for milliseconds of a core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from time import perf_counter, sleep

from souvenir.core.ledger import Seen
from souvenir.core.passages import PreparedPassage
from souvenir.core.types import ArmCandidate, Memory, PassageKind, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.store.learning import extractions
from souvenir.store.memories import reads

CANDIDATES_PER_FACT = 5


@dataclass(frozen=True, slots=True)
class Shown:
    """Memories by the number that the model sees, and the candidates of each fact.

    :param of_facts: Candidate numbers by the fact's ordinal, best first.
    """

    memories: Mapping[int, Memory]
    versions: Mapping[int, int]
    of_facts: Mapping[int, tuple[int, ...]]

    def seen(self, number: int) -> Seen:
        memory_id = self.memories[number].id
        return Seen(memory_id, self.versions[memory_id])

    def candidates_of(self, ordinal: int) -> tuple[Seen, ...]:
        return tuple(self.seen(number) for number in self.of_facts[ordinal])


def candidates(engine: MemoryEngine, scope: Scope, texts: Mapping[int, str]) -> Shown:
    """:param texts: Texts of facts, by ordinal."""
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


# --- pacing ----------------------------------------------------------------------------------------------------------


MAX_REST_S = 0.1
"""Upper bound for a pause, in case a piece took long because other threads had the cores."""


@contextmanager
def paced() -> Iterator[None]:
    """Run one piece of work, some milliseconds of a core, then pause as long.

    Never used inside a transaction or a lock.
    """
    began = perf_counter()
    yield
    sleep(min(perf_counter() - began, MAX_REST_S))


TEXTS_AT_ONCE = 2
"""About 40 tokens; a full run of the model takes up to eight times as many, and a concurrent search waits for its end.
Measured with two jobs that embed continuously: median search latency 25 ms, compared with 85 ms at 30 texts per run;
the jobs were no slower.
"""


def prepared(engine: MemoryEngine, texts: Sequence[str]) -> list[Sequence[PreparedPassage]]:
    """Return the passages of each text.

    :raises EmbeddingUnavailable: If the model cannot run.
    """
    pieces = [texts[start : start + TEXTS_AT_ONCE] for start in range(0, len(texts), TEXTS_AT_ONCE)]
    found: list[Sequence[PreparedPassage]] = []
    for piece in pieces:
        with paced():
            found += engine.prepare(piece)
    return found
