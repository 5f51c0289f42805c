"""Concepts and entities as they were at a time; concepts by the texts of then and the present rules of recognition.

Stored mentions are used for texts that have not changed since; former texts are analysed again. Deleted texts and
concepts are deleted at every time. A concept that only former texts mention has no vector: it is recognised as another
spelling by a short name or a claim only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from souvenir.core.concurrency import require_time
from souvenir.core.types import Listing, Memory, RecordKind, SourceFilter, SourceMatch
from souvenir.knowledge.concept_similarity import assign_roots
from souvenir.knowledge.entity_concepts import content_of, reading_of, stated_claims
from souvenir.store.graph import claims, past, relations
from souvenir.store.graph.mention_queue import Unread
from souvenir.store.graph.relations import NamedMemory
from souvenir.store.memories import history, reads
from souvenir.store.messages import messages
from souvenir.store.namespaces import Namespace
from souvenir.store.privacy import HiddenTexts, HiddenTopics, hidden_texts, messages_flagged_then
from souvenir.store.sql import Connection


@contextmanager
def graph_at(store: Connection, namespace: Namespace, at: datetime) -> Iterator[Connection]:
    """Build the graph of an agent at a time in memory, with its concepts, their spellings, relations and claims.

    :raises DeadlineExceeded: If nobody waits for the answer any more.
    """
    whole = replace(namespace, sources=None)
    same_messages, edited = _messages(store, whole.id, at)
    same_memories, changed, entities = _memories(store, whole, at)
    named = {
        one.id: NamedMemory(one.id, one.source, one.key, one.metadata)
        for one in entities
        if one.key is not None and not one.archived
    }
    unchanged = {RecordKind.MESSAGE.value: same_messages, RecordKind.MEMORY.value: same_memories}
    with past.empty_graph() as graph:
        former = []
        for text in (*edited, *changed):
            require_time()
            former.append(reading_of(text, named))
        new = past.fill(graph, store, whole.id, at, unchanged=unchanged, former=former)
        links = relations.links_between(store, [one.id for one in entities], at)
        past.insert_entities(graph, whole.id, entities, links)
        # Oldest first, since of two types of one concept the newest counts. A claim that does not stand any more is as
        # old as the last change of its entity by then.
        standing = {content_of(one): one.created_at for one in claims.of_memories(store, named) if one.created_at <= at}
        updated = {one.id: one.updated_at for one in entities}
        stated = stated_claims(graph, whole.id, named.values())
        for draft in sorted(stated, key=lambda one: standing.get(content_of(one)) or updated[one.memory_id or 0]):
            claims.insert(graph, whole.id, draft, at)
        assign_roots(graph, whole.id, new)
        yield graph


def hidden_at(store: Connection, namespace: Namespace, hidden: HiddenTopics, at: datetime) -> HiddenTexts:
    """Return the texts that are flagged with one of these topics, or were at a time."""
    now = hidden_texts(store, namespace.id, hidden)
    if not hidden.topics:
        return now
    return HiddenTexts(
        now.messages | messages_flagged_then(store, namespace.id, hidden.topics, at),
        now.memories | history.flagged_at(store, namespace, at, hidden.topics),
    )


@contextmanager
def entities_at(store: Connection, namespace: Namespace, source: str, at: datetime) -> Iterator[Connection]:
    """Build the knowledge graph of one source at a time in memory: its memories with a name, and their relations.

    What was deleted since is deleted at every time.
    """
    ids = history.ids_at(store, namespace, at, Listing(source=SourceFilter(source, SourceMatch.PATH)))
    then = history.memories_at(store, namespace, at, ids).values()
    stood = [one for one in then if one.source == source and one.key is not None]
    with past.empty_graph() as graph:
        past.insert_entities(graph, namespace.id, stood, relations.links_between(store, [one.id for one in stood], at))
        yield graph


def _messages(store: Connection, namespace_id: int, at: datetime) -> tuple[Set[int], Sequence[Unread]]:
    """Return the messages of a time whose stored mentions are those of then, and the others as they were."""
    stood = messages.stored_then(store, namespace_id, at)
    edited = messages.by_id(store, namespace_id, [one.id for one in stood if not one.same], at)
    former = [Unread(0, RecordKind.MESSAGE, id_, one.content, one.created_at, one.role) for id_, one in edited.items()]
    return {one.id for one in stood if one.same}, former


def _memories(
    store: Connection, namespace: Namespace, at: datetime
) -> tuple[Set[int], Sequence[Unread], Sequence[Memory]]:
    """Return the active memories of a time as `_messages`, and those of the knowledge graph, archived or not.

    Those of the knowledge graph are analysed again, since their metadata are part of what they state.
    """
    stood = history.stored_at(store, namespace, at, {})
    active = {*reads.memory_ids(store, namespace, Listing(archived=False))}
    entities = relations.entity_ids(store, namespace.id)
    unchanged = {one.id for one in stood if one.same and not one.archived and one.id in active} - entities
    changed = [one.id for one in stood if one.id in entities or not (one.archived or one.id in unchanged)]
    then = history.memories_at(store, namespace, at, changed).values()
    former = [Unread(0, RecordKind.MEMORY, one.id, one.text, one.occurred_at, None) for one in then if not one.archived]
    return unchanged, former, [one for one in then if relations.is_named(one.source, one.key)]
