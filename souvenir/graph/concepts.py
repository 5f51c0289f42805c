"""The concepts of an agent, as callers see and change them. The scope's namespace is the agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import apsw

from memory_engine import MemoryEngine
from souvenir.concepts.weights import rarity
from souvenir.errors import ConceptNotFound, NothingToDo
from souvenir.graph.changing import ConceptPatch, change, everything_called
from souvenir.graph.describing import Mentioning, plainest
from souvenir.graph.reading import named, top
from souvenir.graph.related import Related, related
from souvenir.moments import utc_now
from souvenir.observation.tracing import MemoryOperation, Tracing, traced
from souvenir.store import agents, claims, mentions, messages, near, reads, unread
from souvenir.store import concepts as rows
from souvenir.store.concepts import Concept, Mention
from souvenir.store.messages import Message
from souvenir.store.transaction import Transaction
from souvenir.types import Memory, RecordKind, Scope

LATEST = 10
"""Messages and memories that are shown with a concept."""

LOOKED_AT = 32
"""Of the first messages and memories and of the latest, for what they say of a concept."""


@dataclass(frozen=True, slots=True)
class ConceptDetails:
    """A concept with where it is mentioned.

    :param rarity: How rare it is in what the agent was told, in [0, 1].
    :param description: What was stated, else the sentence that says most plainly what it is.
    :param described_by: `caller`, `model`, or `texts` for such a sentence.
    :param confidence: Of what is stated of it, in [0, 1]; 1 of what is only read.
    :param messages: The latest that mention it, newest first; likewise `memories`.
    """

    concept: Concept
    rarity: float
    description: str | None
    described_by: str | None
    confidence: float
    messages: Sequence[Message]
    memories: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class ConceptCounts:
    """How many concepts there are, and how many messages and memories wait to be read."""

    concepts: int
    waiting: int


class Concepts:
    """Safe to call from any thread. What is still to be read has no concepts yet.

    :raises AgentNotFound: Every verb, if the namespace is no agent.
    """

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    # --- reading -----------------------------------------------------------------------------------------------

    def counts(self, scope: Scope) -> ConceptCounts:
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.known(connection, scope).namespace_id
            return ConceptCounts(rows.count(connection, namespace_id), unread.count(connection, namespace_id))

    def page(self, scope: Scope, *, offset: int = 0, limit: int = 100) -> tuple[Sequence[Concept], int]:
        """Those that tell most of the agent first, and how many there are."""
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.known(connection, scope).namespace_id
            found = top(connection, namespace_id, limit=limit, offset=offset)
            return found, rows.count(connection, namespace_id)

    def details(self, scope: Scope, name_or_id: str | int) -> ConceptDetails:
        """:param name_or_id: Its id, that of a spelling of it, or a name, however it is written.

        :raises ConceptNotFound: If there is none.
        """
        with self._engine.namespace(scope) as (connection, namespace):
            namespace_id = agents.known(connection, scope).namespace_id
            concept = _present(connection, namespace_id, name_or_id)
            members = rows.members(connection, concept.id)
            latest = _by_kind(rows.mentions_of(connection, members, limit=LATEST))
            said = messages.by_id(connection, namespace_id, latest[RecordKind.MESSAGE])
            kept = {} if namespace is None else reads.memories(connection, namespace, latest[RecordKind.MEMORY])
            description, by = concept.description, rows.described_by(connection, members)
            if description is None:
                description = plainest(_mentioning(connection, namespace, namespace_id, members))
                by = None if description is None else "texts"
            return ConceptDetails(
                concept,
                rarity(concept.owners, rows.owners_read(connection, namespace_id)),
                description,
                by,
                min(
                    (one.confidence for one in claims.of_concepts(connection, members) if one.other_id is None),
                    default=1,
                ),
                [said[id_] for id_ in latest[RecordKind.MESSAGE] if id_ in said],
                [kept[id_] for id_ in latest[RecordKind.MEMORY] if id_ in kept],
            )

    def related(
        self, scope: Scope, name_or_id: str | int, *, depth: int = 2, limit: int = 50
    ) -> tuple[Concept, Sequence[Related]]:
        """A concept, and what belongs to it over at most `depth` steps, strongest first.

        :raises ConceptNotFound: If there is none.
        """
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.known(connection, scope).namespace_id
            concept = _present(connection, namespace_id, name_or_id)
            found = related(connection, namespace_id, concept.id, depth=depth, limit=limit, now=utc_now())
            return concept, found

    # --- writing -----------------------------------------------------------------------------------------------

    @traced(MemoryOperation.UPDATE)
    def update(self, scope: Scope, concept_id: int, patch: ConceptPatch) -> Concept:
        """Replace what callers say of a concept. What is said to be another name of it becomes one soon.

        :raises NothingToDo: If the patch changes nothing.
        :raises ConceptNotFound: If there is none.
        """
        if patch.changes_nothing:
            raise NothingToDo("Nothing to change; give name, description, kind or aliases")
        self._require(scope, concept_id)
        patch = patch.screened(self._engine.screening.applied(scope))

        def work(tx: Transaction) -> Concept:
            root_id = _present(tx.connection, tx.namespace_id, concept_id).id
            change(tx, root_id, patch)
            return rows.by_ids(tx.connection, tx.namespace_id, [root_id])[root_id]

        return self._engine.write(scope, work)

    @traced(MemoryOperation.DELETE)
    def hide(self, scope: Scope, concept_id: int) -> Concept:
        """Forget a concept under all of its spellings and stated names; they are not read as concepts any more.

        :raises ConceptNotFound: If there is none.
        """

        def work(tx: Transaction) -> Concept:
            concept = _present(tx.connection, tx.namespace_id, concept_id)
            members, names = everything_called(tx, concept.id)
            for key in names:
                mentions.hide_key(tx.connection, tx.namespace_id, key)
            for id_, key in near.keys(tx.connection, members).items():
                tx.passages.tell(mentions.hide(tx.connection, tx.namespace_id, id_, key).changes)
            return concept

        self._require(scope, concept_id)
        return self._engine.write(scope, work)

    def _require(self, scope: Scope, concept_id: int) -> None:
        """So that a write that changes nothing makes no namespace."""
        with self._engine.namespace(scope) as (connection, _):
            _present(connection, agents.known(connection, scope).namespace_id, concept_id)


def _present(connection: apsw.Connection, namespace_id: int, name_or_id: str | int) -> Concept:
    """:raises ConceptNotFound: If there is none."""
    id_ = named(connection, namespace_id, name_or_id) if isinstance(name_or_id, str) else name_or_id
    found = {} if id_ is None else rows.by_ids(connection, namespace_id, [id_])
    if id_ is None or id_ not in found:
        raise ConceptNotFound(name_or_id)
    return found[id_]


def _by_kind(found: Iterable[Mention]) -> dict[RecordKind, list[int]]:
    """Their ids."""
    mentioning = list(found)
    return {kind: [one.owner_id for one in mentioning if one.kind is kind] for kind in RecordKind}


def _mentioning(
    connection: apsw.Connection, namespace: reads.Namespace | None, namespace_id: int, members: Sequence[int]
) -> list[Mentioning]:
    """The first and the latest texts that mention a concept."""
    first = rows.mentions_of(connection, members, limit=LOOKED_AT, oldest_first=True)
    found = {(one.kind, one.owner_id): one for one in (*first, *rows.mentions_of(connection, members, limit=LOOKED_AT))}
    ids = _by_kind(found.values())
    said = messages.by_id(connection, namespace_id, ids[RecordKind.MESSAGE])
    kept = {} if namespace is None else reads.memories(connection, namespace, ids[RecordKind.MEMORY])
    texts = [
        Mentioning(one.form, said[id_].content, said[id_].role, one.at)
        for (kind, id_), one in found.items()
        if kind is RecordKind.MESSAGE and id_ in said
    ]
    return texts + [
        Mentioning(one.form, kept[id_].text, None, one.at)
        for (kind, id_), one in found.items()
        if kind is RecordKind.MEMORY and id_ in kept
    ]
