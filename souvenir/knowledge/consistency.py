"""Check that the graph equals one that is rebuilt from the stored texts: every text is analysed again and compared.

`souvenir.store.check` compares the counts with the mentions. Texts that wait to be indexed, concepts that wait to be
matched and sessions that wait for topics are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from souvenir.core.types import Mentioned
from souvenir.knowledge.concept_similarity import matching, may_be_one, root_of
from souvenir.knowledge.entity_concepts import content_of, reading_of, stated_claims
from souvenir.knowledge.topic_assignment import clustered, read_segments
from souvenir.store import meta
from souvenir.store.graph import claims, concept_similarity, mention_queue, mentions, topics
from souvenir.store.graph.concepts import roots
from souvenir.store.graph.mention_queue import Unread, every_read
from souvenir.store.graph.mentions import Reading
from souvenir.store.graph.relations import named_memories
from souvenir.store.sql import Connection
from souvenir.store.vectors import MODEL


def disagreements(connection: Connection) -> Sequence[str]:
    """Return one sentence for each disagreement, over all agents that are not being deleted."""
    rows: Any = connection.execute(
        "SELECT namespace_id FROM agents WHERE namespace_id NOT IN "
        "(SELECT owner_id FROM removals WHERE kind = 'namespace')"
    ).fetchall()
    found: list[str] = []
    for (namespace_id,) in rows:
        found += _mentions(connection, namespace_id)
        if not mention_queue.count(connection, namespace_id):
            found += _claims(connection, namespace_id)
        if not concept_similarity.following_unmatched(connection, namespace_id, limit=1):
            found += _matches(connection, namespace_id)
        if _has_final_topics(connection, namespace_id):
            found += _topics(connection, namespace_id)
    return found


def _mentions(connection: Connection, namespace_id: int) -> Iterator[str]:
    entities = named_memories(connection, namespace_id)
    for one in every_read(connection, namespace_id):
        reading = reading_of(one, entities)
        said = _visible(connection, namespace_id, reading.mentions)
        rows: Any = connection.execute(
            "SELECT c.key, m.form, m.concept_kind FROM mentions m JOIN concepts c ON c.id = m.concept_id "
            "WHERE m.kind = ? AND m.owner_id = ?",
            (one.kind.value, one.owner_id),
        ).fetchall()
        if sorted(rows) != sorted((mention.key, mention.form, mention.kind.value) for mention in said):
            yield f"{one.kind} {one.owner_id} mentions something else than what is stored of it"
        elif _stored_statements(connection, one) != _statements(reading, said):
            yield f"{one.kind} {one.owner_id} states or defines something else than what is stored of it"


def _statements(reading: Reading, said: Sequence[Mentioned]) -> list[tuple[str, str]]:
    """Return the statements of a text by kind, and its definitions of visible concepts."""
    defined = [(one.key, reading.definitions[one.key].sentence) for one in said if one.key in reading.definitions]
    return sorted([*defined, *((statement.kind.value, statement.sentence) for statement in reading.statements)])


def _stored_statements(connection: Connection, one: Unread) -> list[tuple[str, str]]:
    rows: Any = connection.execute(
        "SELECT c.key, d.sentence FROM definitions d JOIN concepts c ON c.id = d.concept_id "
        "WHERE d.kind = ?1 AND d.owner_id = ?2 UNION ALL "
        "SELECT kind, sentence FROM statements WHERE message_id = ?2 AND ?1 = 'message'",
        (one.kind.value, one.owner_id),
    ).fetchall()
    return sorted(rows)


def _visible(connection: Connection, namespace_id: int, found: Sequence[Mentioned]) -> list[Mentioned]:
    hidden = mentions.hidden_keys(connection, namespace_id, [mention.key for mention in found])
    return [mention for mention in found if mention.key not in hidden]


def _claims(connection: Connection, namespace_id: int) -> Iterator[str]:
    entities = named_memories(connection, namespace_id)
    expected = Counter(map(content_of, stated_claims(connection, namespace_id, entities.values())))
    stored = Counter(content_of(one) for one in claims.of_namespace(connection, namespace_id) if one.memory_id)
    for memory_id in {content[0] for content in (expected - stored) + (stored - expected)}:
        yield f"memory {memory_id} states other claims about concepts than are stored of it"


def _matches(connection: Connection, namespace_id: int) -> Iterator[str]:
    keys = concept_similarity.all_keys(connection, namespace_id)
    stored, root_by_id = concept_similarity.near(connection, keys), roots(connection, keys)
    for id_, others in matching(connection, namespace_id, keys).items():
        near = stored.get(id_, [])
        if others - {*near} or not all(may_be_one(keys[id_], keys[one]) for one in near):
            yield f"concept {id_} is near to others than is stored"
        if root_by_id[id_] != (root_of(connection, id_) or id_):
            yield f"concept {id_} is not what it is another spelling of by what is near to it"


def _has_final_topics(connection: Connection, namespace_id: int) -> bool:
    """Return False while texts, sessions or a new model wait for the indexer."""
    is_queued = topics.unsorted(connection, namespace_id) or mention_queue.count(connection, namespace_id)
    return not is_queued and meta.get(connection, "graph_model") == meta.get(connection, MODEL)


def _topics(connection: Connection, namespace_id: int) -> Iterator[str]:
    """Compare the memberships and terms of topics, not their names."""
    _, found = clustered(connection, read_segments(connection, topics.session_ids(connection, namespace_id)))
    for topic_id, topic in topics.stored(connection, namespace_id).items():
        if topic in found:
            found.remove(topic)
        else:
            yield f"topic {topic_id} is another one than its messages make"
    for topic in found:
        sessions = sorted({place.session_id for place in topic.segments})
        yield f"messages of sessions {sessions} are a topic that is not stored"
