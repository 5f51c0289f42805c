"""Novelty check of decisions: known facts are not added again, and added facts are linked to related memories.

The rules for which memories may be changed are enforced in `souvenir.learning.guards`. No model is called. A decision
that is overruled records the reason and what overruled it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from souvenir.core.ledger import DecidedBy, Decision, FactRow, FactStage, LedgerFact, Seen, Verdict
from souvenir.core.passages import PreparedPassage
from souvenir.core.types import FloatVector, Memory, Scope
from souvenir.learning.application import MAX_RELATED, RELATED
from souvenir.learning.candidates import paced, prepared
from souvenir.learning.guards import may_change
from souvenir.learning.outcomes import skipped
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.similarity import NOVELTY_SIMILARITY, cosine, figures, unit_vectors, words_key
from souvenir.store.learning import extractions
from souvenir.store.memories import duplicates

SEEN_SIMILARITY = 0.95
"""Replaces NOVELTY_SIMILARITY for a memory that the model saw with the fact and did not consider the same. With 0.85, a
tenth of the reference facts of LoCoMo were lost, separate events among them.
"""

LINK_SIMILARITY = 0.5
"""Cosine from which an added memory is linked to a memory as related, with the vectors of this service."""

_CHANGES = (Verdict.UPDATE, Verdict.DELETE)
_STORES = (Verdict.ADD, Verdict.UPDATE, Verdict.CONFLICT)


def settled(engine: MemoryEngine, scope: Scope, rows: Sequence[FactRow]) -> list[FactRow]:
    """Return the rows as they may be applied.

    Updates and conflicts go first, because what they store can make an added fact known.
    """
    cases = [_Case(row, row.fact, row.decision) for row in rows if row.fact is not None and row.decision is not None]
    targets = {case.decision.target.memory_id for case in cases if case.decision.target is not None}
    memories = engine.get(scope, list(targets))
    cases = [case.ruled(memories) for case in cases]
    return [case.row for case in _Novelty(engine, scope, cases).gated()]


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

    def ruled(self, memories: Mapping[int, Memory]) -> _Case:
        """Apply the protection of the target, and skip a text that the target already contains."""
        target, verdict = self.decision.target, self.decision.verdict
        memory = None if target is None else memories.get(target.memory_id)
        if memory is None or verdict in (Verdict.ADD, Verdict.NOOP):
            return self
        if self.stores and words_key(self.text) == words_key(memory.text):
            reason = f"The memory says the same; {verdict.value} was asked for"
            return self.with_decision(replace(self.decision, verdict=Verdict.NOOP, by=DecidedBy.RULE, reason=reason))
        if verdict not in _CHANGES or may_change(self.fact, memory):
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
