"""Comparison of facts with stored memories: the candidates that the model sees, and the novelty check of decisions.

Candidates interleave the best hits of both retrieval arms, so that neither dominates. The model sees numbers from 1;
only the service maps a number to a memory and its version. Known facts are not added again, and added facts are linked
to related memories; a decision that is overruled records the reason and what overruled it. The rules for which memories
may be changed are enforced in `souvenir.learning.guards`. No model is called.

A job pauses as long as it worked, and embeds a few texts at a time: its model calls take seconds, while a concurrent
search waits for milliseconds of a core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from time import perf_counter, sleep

import numpy as np

from souvenir.core.ledger import DecidedBy, Decision, FactRow, FactStage, LedgerFact, Seen, Verdict
from souvenir.core.passages import PreparedPassage
from souvenir.core.types import ArmCandidate, FloatVector, Memory, PassageKind, Scope, SearchQuery
from souvenir.learning.guards import may_change, skipped
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.similarity import NOVELTY_SIMILARITY, cosine, figures, unit_vectors, words_key
from souvenir.store.learning import extractions
from souvenir.store.memories import duplicates, reads

SEEN_SIMILARITY = 0.95
"""Replaces NOVELTY_SIMILARITY for a memory that the model saw with the fact and did not consider the same. With 0.85, a
tenth of the reference facts of LoCoMo were lost, separate events among them.
"""

LINK_SIMILARITY = 0.5
"""Cosine from which an added memory is linked to a memory as related, with the vectors of this service."""

MAX_RELATED = 3
"""Maximum number of links from a new memory to related memories."""

RELATED = "related"
"""Outcome key of related memories as [id, cosine], nearest first."""

_CHANGES = (Verdict.UPDATE, Verdict.DELETE)
_STORES = (Verdict.ADD, Verdict.UPDATE, Verdict.CONFLICT)


def settled(engine: MemoryEngine, scope: Scope, rows: Sequence[FactRow]) -> list[FactRow]:
    """Return the rows as they may be applied.

    Updates and conflicts go first, because what they store can make an added fact known.
    """
    cases = [_Case(row, row.fact, row.decision) for row in rows if row.fact is not None and row.decision is not None]
    targets = {case.decision.target.memory_id for case in cases if case.decision.target is not None}
    if targets:
        memories = engine.get(scope, list(targets))
        cases = [case.ruled(memories, scope) for case in cases]
    return [case.row for case in _Novelty(engine, scope, cases).gated()]


def decided_without_model(row: FactRow, reason: str) -> FactRow:
    """Return the row with the decision to add its fact if it is novel."""
    asked = 1 if row.decision is None else row.decision.asked + 1
    decision = Decision(Verdict.ADD, DecidedBy.FALLBACK, reason, asked=asked)
    return replace(row, stage=FactStage.DECIDED, decision=decision)


@dataclass(frozen=True, slots=True)
class _Case:
    """A row whose fact and decision are present."""

    row: FactRow
    fact: LedgerFact
    decision: Decision

    @property
    def stores(self) -> bool:
        return self.row.stage is FactStage.DECIDED and self.decision.verdict in _STORES

    @property
    def text(self) -> str:
        """The text to store."""
        return self.decision.text or self.fact.text

    def was_shown(self, memory_id: int) -> bool:
        """Return True if a model decided, and saw that memory with the fact."""
        seen = {one.memory_id for one in self.decision.candidates}
        return self.decision.by is DecidedBy.MODEL and memory_id in seen

    def with_decision(self, decision: Decision) -> _Case:
        return _Case(replace(self.row, decision=decision), self.fact, decision)

    def ruled(self, memories: Mapping[int, Memory], scope: Scope) -> _Case:
        """Apply the protection of the target, and skip a text that the target already contains."""
        target, verdict = self.decision.target, self.decision.verdict
        memory = None if target is None else memories.get(target.memory_id)
        if memory is None or verdict in (Verdict.ADD, Verdict.NOOP):
            return self
        if self.stores and words_key(self.text) == words_key(memory.text):
            reason = f"The memory says the same; {verdict.value} was asked for"
            return self.with_decision(replace(self.decision, verdict=Verdict.NOOP, by=DecidedBy.RULE, reason=reason))
        if verdict not in _CHANGES or may_change(self.fact, memory, scope):
            return self
        # Reported here, so that a dry run shows it; enforced when the decision is applied.
        ruled = replace(self.decision, by=DecidedBy.RULE, reason=f"{self.decision.reason} (The memory is protected)")
        if verdict is Verdict.UPDATE:
            return self.with_decision(replace(ruled, verdict=Verdict.CONFLICT, text=None))
        case, outcome = self.with_decision(ruled), skipped("protected", old_id=memory.id)
        return replace(case, row=replace(case.row, stage=FactStage.SKIPPED, outcome=outcome))


class _Novelty:
    """Checks for each fact to be added whether it is novel, and finds related memories."""

    def __init__(self, engine: MemoryEngine, scope: Scope, cases: Sequence[_Case]) -> None:
        self._engine = engine
        self._scope = scope
        self._cases = {case.row.ordinal: case for case in cases}
        storing = [case for case in cases if case.stores]
        self._order = sorted(storing, key=lambda case: (case.decision.verdict is Verdict.ADD, case.row.ordinal))
        texts = [case.text for case in self._order]
        self._prepared = prepared(engine, texts)
        self._vectors = unit_vectors(self._prepared)
        self._changed = {
            case.decision.target.memory_id
            for case in cases
            if case.decision.verdict in _CHANGES
            and case.decision.target is not None
            and case.row.stage is FactStage.DECIDED
        }

    def gated(self) -> list[_Case]:
        stored: list[tuple[str, FloatVector]] = []
        for case, passages, vector in zip(self._order, self._prepared, self._vectors, strict=True):
            if case.decision.verdict is Verdict.ADD:
                case = self._gated(case, passages, vector, stored)
            if case.stores:
                stored.append((case.text, vector))
            self._cases[case.row.ordinal] = case
        return list(self._cases.values())

    def _gated(
        self,
        case: _Case,
        passages: Sequence[PreparedPassage],
        vector: FloatVector,
        stored: Sequence[tuple[str, FloatVector]],
    ) -> _Case:
        """Return the case with its related memories if it is novel, else with the verdict that it is known."""
        known = replace(case.decision, verdict=Verdict.NOOP, by=DecidedBy.NOVELTY, target=None)
        with paced():
            memory, similarity = self._engine.nearest_of(self._scope, passages) or (None, 0.0)
        known_from = SEEN_SIMILARITY if memory is not None and case.was_shown(memory.id) else NOVELTY_SIMILARITY
        # A memory that this job changes says something else afterwards.
        if (
            memory is not None
            and memory.id not in self._changed
            and _is_known(case.text, memory.text, similarity, known_from)
        ):
            reason = "A memory says this already"
            overruled = replace(known, target=self._seen(memory.id), similarity=round(similarity, 4), reason=reason)
            return case.with_decision(overruled)
        for text, other in stored:
            likeness = cosine(vector, other)
            if _is_known(case.text, text, likeness, NOVELTY_SIMILARITY):
                reason = "Another fact of this transcript says this already"
                return case.with_decision(replace(known, similarity=round(likeness, 4), reason=reason))
        near = self._near(case, passages, vector)
        row = replace(case.row, outcome={**case.row.outcome, RELATED: near}) if near else case.row
        new = replace(case.decision, similarity=None if memory is None else round(similarity, 4))
        return replace(case, row=row).with_decision(new)

    def _seen(self, memory_id: int) -> Seen | None:
        with self._engine.namespace(self._scope) as (connection, namespace):
            versions = {} if namespace is None else extractions.versions(connection, namespace, [memory_id])
        return Seen(memory_id, versions[memory_id]) if memory_id in versions else None

    def _near(self, case: _Case, passages: Sequence[PreparedPassage], vector: FloatVector) -> list[list[float]]:
        """Return the candidates that are similar enough to be linked, nearest first."""
        ids = np.array(sorted({seen.memory_id for seen in case.decision.candidates} - self._changed), dtype=np.int64)
        if not len(ids):
            return []
        with self._engine.namespace(self._scope) as (connection, _):
            vectors = duplicates.mean_vectors(connection, ids, model_id=passages[0].model_id, dim=len(vector))
        near = [(cosine(vector, other), memory_id) for memory_id, other in zip(ids.tolist(), vectors, strict=True)]
        first = [one for one in sorted(near, reverse=True) if one[0] >= LINK_SIMILARITY][:MAX_RELATED]
        return [[memory_id, round(likeness, 4)] for likeness, memory_id in first]


def _is_known(text: str, other: str, similarity: float, known_from: float) -> bool:
    """Return True if a text says nothing that the other does not say, judged by vectors and figures."""
    return similarity >= known_from and figures(text) <= figures(other)


# --- candidates ------------------------------------------------------------------------------------------------------


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
