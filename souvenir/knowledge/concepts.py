"""Read and hide the concepts of an agent, which is the scope's namespace; `claims` changes their descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Memory, RecordKind, Scope
from souvenir.knowledge.concept_lookup import all_names, require_concept, require_concepts
from souvenir.knowledge.concept_ranking import rarity, top, worth_reading
from souvenir.knowledge.related import ReachedConcept, related
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import claims, concept_similarity, mention_queue, mentions
from souvenir.store.graph import concepts as rows
from souvenir.store.graph.concepts import Concept, Mention
from souvenir.store.memories import reads
from souvenir.store.messages import agents, messages
from souvenir.store.messages.messages import Message
from souvenir.store.transaction import Transaction

LATEST = 10
"""Number of messages and memories that are returned with a concept."""


@dataclass(frozen=True, slots=True)
class ConceptDetails:
    """A concept and the texts that mention it.

    :param rarity: Its rarity in the texts of the agent, in [0, 1].
    :param described_by: The source of its description: `caller`, `model`, or `texts` for a defining sentence.
    :param confidence: Confidence of the claims about it, in [0, 1]; 1 if there is none.
    :param messages: The latest messages that mention it, newest first; likewise `memories`.
    """

    concept: Concept
    rarity: float
    described_by: str | None
    confidence: float
    messages: Sequence[Message]
    memories: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class ConceptCounts:
    """The number of concepts, and of messages and memories that wait to be indexed."""

    concepts: int
    waiting: int


class Concepts:
    """Thread-safe. Texts that wait to be indexed have no concepts yet.

    :raises AgentNotFound: By every method, if the namespace is no agent.
    """

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    # --- reading -----------------------------------------------------------------------------------------------

    def counts(self, scope: Scope) -> ConceptCounts:
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.require_agent(connection, scope).namespace_id
            return ConceptCounts(rows.count(connection, namespace_id), mention_queue.count(connection, namespace_id))

    def page(self, scope: Scope, *, offset: int = 0, limit: int = 100) -> tuple[Sequence[Concept], int]:
        """Return the most significant concepts first, and their total number."""
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.require_agent(connection, scope).namespace_id
            found = top(connection, namespace_id, limit=limit, offset=offset)
            return found, rows.count(connection, namespace_id)

    def leading(self, scope: Scope, *, limit: int) -> Sequence[Concept]:
        """Return the concepts that introduce the agent, without dates and quantities."""
        with self._engine.namespace(scope) as (connection, _):
            return worth_reading(connection, agents.require_agent(connection, scope).namespace_id, limit=limit)

    def details(self, scope: Scope, name_or_id: str | int, *, latest: int = LATEST) -> ConceptDetails:
        """Return a concept with its description and latest mentions.

        :param name_or_id: Its id, the id of one of its spellings, or a name in any spelling.
        :param latest: Maximum number of mentions.
        :raises ConceptNotFound: If there is none.
        """
        with self._engine.namespace(scope) as (connection, namespace):
            namespace_id = agents.require_agent(connection, scope).namespace_id
            concept = require_concept(connection, namespace_id, name_or_id)
            members = rows.members(connection, concept.id)
            mentioning = _by_kind(rows.mentions_of(connection, members, limit=latest))
            said = messages.by_id(connection, namespace_id, mentioning[RecordKind.MESSAGE])
            kept = {} if namespace is None else reads.memories(connection, namespace, mentioning[RecordKind.MEMORY])
            return ConceptDetails(
                concept,
                rarity(concept.owners, rows.owners_read(connection, namespace_id)),
                rows.described_by(connection, members) or ("texts" if concept.description else None),
                min(
                    (one.confidence for one in claims.of_concepts(connection, members) if one.other_id is None),
                    default=1,
                ),
                [said[id_] for id_ in mentioning[RecordKind.MESSAGE] if id_ in said],
                [kept[id_] for id_ in mentioning[RecordKind.MEMORY] if id_ in kept],
            )

    def related(
        self, scope: Scope, name_or_id: str | int, *, depth: int = 2, limit: int = 50
    ) -> tuple[Concept, Sequence[ReachedConcept]]:
        """Return a concept, and the concepts related to it within `depth` steps, strongest first.

        :raises ConceptNotFound: If there is none.
        """
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.require_agent(connection, scope).namespace_id
            concept = require_concept(connection, namespace_id, name_or_id)
            found = related(connection, namespace_id, concept.id, depth=depth, limit=limit, now=utc_now())
            return concept, found

    # --- writing -----------------------------------------------------------------------------------------------

    @traced(MemoryOperation.DELETE)
    def hide(self, scope: Scope, concept_id: int) -> Concept:
        """Delete a concept under all of its spellings and stated names; they are never indexed again.

        :raises ConceptNotFound: If there is none.
        """

        def work(tx: Transaction) -> Concept:
            concept = require_concept(tx.connection, tx.namespace_id, concept_id)
            members, names = all_names(tx.connection, tx.namespace_id, concept.id)
            for key in names:
                mentions.hide_key(tx.connection, tx.namespace_id, key)
            for id_, key in concept_similarity.keys(tx.connection, members).items():
                tx.passages.tell(mentions.hide(tx.connection, tx.namespace_id, id_, key).changes)
            return concept

        require_concepts(self._engine, scope, concept_id)
        return self._engine.write(scope, work)


def _by_kind(found: Iterable[Mention]) -> dict[RecordKind, list[int]]:
    """Return the ids of the mentioning texts by kind."""
    mentioning = list(found)
    return {kind: [one.owner_id for one in mentioning if one.kind is kind] for kind in RecordKind}
