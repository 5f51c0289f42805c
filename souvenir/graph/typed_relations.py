"""How concepts relate by somebody's word: typed relations, read with what they rest on, stated, and taken back.

A relation is one of what stands for its two ends, however they are spelt. Who states one again changes nothing; whoever
takes one back takes it from everybody who claimed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from memory_engine import MemoryEngine
from souvenir.errors import ConceptNotFound, InvalidRequest, NotFound
from souvenir.graph.claiming import MAX_TYPE_CHARS, type_name
from souvenir.observation.tracing import MemoryOperation, Tracing, traced
from souvenir.store import agents, claims
from souvenir.store import concepts as rows
from souvenir.store.claims import Claim, ClaimDraft
from souvenir.store.concepts import Concept
from souvenir.store.transaction import Transaction
from souvenir.types import ClaimedBy, ClaimKind, Scope


@dataclass(frozen=True, slots=True)
class StatedRelation:
    """:param claim: Who says so, and because of which message. The concepts are what stands for its ends."""

    claim: Claim
    concept: Concept
    other: Concept


class TypedRelations:
    """The typed relations of an agent, which is the scope's namespace. Safe to use from any thread."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    def of_concept(self, scope: Scope, concept_id: int) -> Sequence[StatedRelation]:
        """Those that lead from a concept or to it: a caller's before a model's, the newest first.

        :raises ConceptNotFound: If there is none.
        """
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.known(connection, scope).namespace_id
            concept = _present(connection, namespace_id, concept_id)
            return _relations(connection, namespace_id, concept)

    @traced(MemoryOperation.UPDATE)
    def relate(self, scope: Scope, concept_id: int, to: int, relation: str) -> StatedRelation:
        """State how a concept relates to another one.

        :raises InvalidRequest: If that can be no type, or both are one thing. :raises ConceptNotFound: If one is not.
        """
        named = relation_type(self._engine.screening.text(scope, relation))
        self._require(scope, concept_id, to)

        def work(tx: Transaction) -> StatedRelation:
            concept, other = (_present(tx.connection, tx.namespace_id, id_) for id_ in (concept_id, to))
            if concept.id == other.id:
                raise InvalidRequest("A concept is not related to itself, and these two are one; name another one")
            stated = _relations(tx.connection, tx.namespace_id, concept)
            held = [one for one in stated if _is(one, concept, other, named)]
            own = next((one for one in held if one.claim.made_by is ClaimedBy.CALLER), None)
            if own is not None:
                return own
            draft = ClaimDraft(ClaimKind.RELATION, concept.id, named, ClaimedBy.CALLER, other_id=other.id)
            return StatedRelation(claims.insert(tx.connection, tx.namespace_id, draft, tx.now), concept, other)

        return self._engine.write(scope, work)

    @traced(MemoryOperation.DELETE)
    def unrelate(self, scope: Scope, concept_id: int, to: int, relation: str) -> Sequence[StatedRelation]:
        """Take a relation back, also as a model claims it; what was removed.

        :raises NotFound: If nobody stated it. :raises ConceptNotFound: If one of the concepts is not there.
        """
        named = relation_type(self._engine.screening.text(scope, relation))
        self._require(scope, concept_id, to)

        def work(tx: Transaction) -> Sequence[StatedRelation]:
            concept, other = (_present(tx.connection, tx.namespace_id, id_) for id_ in (concept_id, to))
            stated = _relations(tx.connection, tx.namespace_id, concept)
            found = [one for one in stated if _is(one, concept, other, named)]
            if not found:
                raise NotFound(f"Nobody states {named!r} of concepts {concept_id} and {to}; look at their relations")
            claims.delete(tx.connection, [one.claim.id for one in found])
            return found

        return self._engine.write(scope, work)

    def _require(self, scope: Scope, *concept_ids: int) -> None:
        """So that a write that changes nothing makes no namespace."""
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.known(connection, scope).namespace_id
            for id_ in concept_ids:
                _present(connection, namespace_id, id_)


def _present(connection: apsw.Connection, namespace_id: int, concept_id: int) -> Concept:
    """What stands for a concept.

    :raises ConceptNotFound: If there is none.
    """
    found = rows.by_ids(connection, namespace_id, [concept_id]).get(concept_id)
    if found is None:
        raise ConceptNotFound(concept_id)
    return found


def _relations(connection: apsw.Connection, namespace_id: int, concept: Concept) -> list[StatedRelation]:
    found = claims.relations(connection, rows.members(connection, concept.id))
    found.sort(key=lambda one: (one.made_by is not ClaimedBy.CALLER, -one.id))
    shown = rows.by_ids(connection, namespace_id, {id_ for one in found for id_ in _ends(one)})
    return [StatedRelation(one, *(shown[id_] for id_ in _ends(one))) for one in found]


def _ends(claim: Claim) -> tuple[int, int]:
    return claim.concept_id, claim.concept_id if claim.other_id is None else claim.other_id


def _is(one: StatedRelation, concept: Concept, other: Concept, relation: str) -> bool:
    return (one.concept.id, one.other.id, type_name(one.claim.text)) == (concept.id, other.id, relation)


def relation_type(relation: str) -> str:
    """In snake_case.

    :raises InvalidRequest: If it has no letters, or too many.
    """
    named = type_name(relation)
    if named is None:
        raise InvalidRequest(f"A relation is called by 1 to {MAX_TYPE_CHARS} letters such as works_for; name it so")
    return named
