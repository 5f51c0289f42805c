"""Read and hide the concepts of an agent, which is the scope's namespace; `claims` changes their descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime

from souvenir.core.errors import AgentNotFound
from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.timestamps import utc_now
from souvenir.core.types import ClaimKind, Memory, RecordKind, Scope
from souvenir.knowledge.concept_lookup import all_names, require_concept, require_concepts
from souvenir.knowledge.concept_ranking import rarity, top, worth_reading
from souvenir.knowledge.past_concepts import graph_at
from souvenir.knowledge.related import ReachedConcept, related
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import claims, concept_similarity, mention_queue, mentions
from souvenir.store.graph import concepts as rows
from souvenir.store.graph.concepts import Concept, Mention
from souvenir.store.memories import history, reads
from souvenir.store.messages import agents, messages
from souvenir.store.messages.messages import Message
from souvenir.store.namespaces import Namespace
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

LATEST = 10
"""Number of messages and memories that are returned with a concept."""


@dataclass(frozen=True, slots=True)
class ConceptDetails:
    """A concept and the texts that mention it.

    :param rarity: Its rarity in the texts of the agent, in [0, 1].
    :param described_by: The source of its description: `caller`, `model`, or `texts` for a defining sentence.
    :param confidence: Confidence of the claims about it, in [0, 1]; without claims, that of its kind.
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

    def page(
        self, scope: Scope, as_of: datetime | None = None, *, offset: int = 0, limit: int = 100
    ) -> tuple[Sequence[Concept], int]:
        """Return the most significant concepts first, and their total number.

        :param as_of: As they were then; None for now.
        """
        with self._reading(scope, as_of) as (graph, _, namespace):
            found = top(graph, namespace.id, limit=limit, offset=offset)
            return found, rows.count(graph, namespace.id)

    def leading(self, scope: Scope, *, limit: int) -> Sequence[Concept]:
        """Return the concepts that introduce the agent."""
        with self._engine.namespace(scope) as (connection, _):
            return worth_reading(connection, agents.require_agent(connection, scope).namespace_id, limit=limit)

    def details(
        self, scope: Scope, name_or_id: str | int, as_of: datetime | None = None, *, latest: int = LATEST
    ) -> ConceptDetails:
        """Return a concept with its description and latest mentions.

        :param name_or_id: Its id, the id of one of its spellings, or a name in any spelling.
        :param as_of: As it was then, with the texts of then; None for now.
        :param latest: Maximum number of mentions.
        :raises ConceptNotFound: If there is none.
        """
        with self._reading(scope, as_of) as (graph, store, namespace):
            concept = require_concept(graph, namespace.id, name_or_id)
            members = rows.members(graph, concept.id)
            mentioning = _by_kind(rows.mentions_of(graph, members, limit=latest))
            said = messages.by_id(store, namespace.id, mentioning[RecordKind.MESSAGE], as_of)
            kept = (
                reads.memories(store, namespace, mentioning[RecordKind.MEMORY])
                if as_of is None
                else history.memories_at(store, namespace, as_of, mentioning[RecordKind.MEMORY])
            )
            stated = claims.of_concepts(graph, members)
            described_by = (one.made_by.value for one in stated if one.kind is ClaimKind.DESCRIPTION)
            return ConceptDetails(
                concept,
                rarity(concept.owners, rows.owners_read(graph, namespace.id)),
                # Of `caller` and `model`, the first one is shown.
                min(described_by, default="texts" if concept.description else None),
                min((one.confidence for one in stated if one.other_id is None), default=concept.confidence),
                [said[id_] for id_ in mentioning[RecordKind.MESSAGE] if id_ in said],
                [kept[id_] for id_ in mentioning[RecordKind.MEMORY] if id_ in kept],
            )

    def related(
        self,
        scope: Scope,
        name_or_id: str | int,
        as_of: datetime | None = None,
        *,
        depth: int = 2,
        limit: int = 50,
    ) -> tuple[Concept, Sequence[ReachedConcept]]:
        """Return a concept, and the concepts related to it within `depth` steps, strongest first.

        :param as_of: As they were then; None for now.
        :raises ConceptNotFound: If there is none.
        """
        with self._reading(scope, as_of) as (graph, _, namespace):
            concept = require_concept(graph, namespace.id, name_or_id)
            found = related(graph, namespace.id, concept.id, depth=depth, limit=limit, now=as_of or utc_now())
            return concept, found

    @contextmanager
    def _reading(self, scope: Scope, as_of: datetime | None) -> Iterator[tuple[Connection, Connection, Namespace]]:
        """Open the graph, now or as it was, the store with its texts, and the agent's namespace."""
        with self._engine.namespace(scope) as (store, namespace):
            if namespace is None:
                raise AgentNotFound(scope.namespace)
            agents.require_agent(store, scope)
            with nullcontext(store) if as_of is None else graph_at(store, namespace, as_of) as graph:
                yield graph, store, namespace

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
                mentions.hide(tx.connection, tx.namespace_id, id_, key)
            return concept

        require_concepts(self._engine, scope, concept_id)
        return self._engine.write(scope, work)


def _by_kind(found: Iterable[Mention]) -> dict[RecordKind, list[int]]:
    """Return the ids of the mentioning texts by kind."""
    mentioning = list(found)
    return {kind: [one.owner_id for one in mentioning if one.kind is kind] for kind in RecordKind}
