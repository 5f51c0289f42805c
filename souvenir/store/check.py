"""Consistency check: SQLite's own checks, and the rules that the schema cannot express."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from math import isfinite
from typing import Any, NamedTuple

import apsw
import numpy as np

from souvenir.core.passages import Passage
from souvenir.core.types import Fact, JsonObject, Link, Memory, MessageRole
from souvenir.store.memories.feedback import FeedbackEntry
from souvenir.store.rows import MEMORY_COLUMNS, PASSAGE_COLUMNS, select, unreadable_ids
from souvenir.store.sql import Connection
from souvenir.store.sqlite import losses
from souvenir.store.sqlite.checksums import COVERED, differences
from souvenir.store.sqlite.renumbering import MAX_COUNTED_ID

_FLOAT_BYTES = np.dtype(np.float32).itemsize
COUNTED = (
    *("memories", "facts", "passages", "users", "sessions", "messages", "blocks"),
    *("concepts", "topics", "claims", "topic_claims", "unread"),
)
"""Tables whose ids are counted."""

_SECONDS = "(a.at - (a.at % 1000000 + 1000000) % 1000000) / 1000000"
_MONTH = f"12 * strftime('%Y', {_SECONDS}, 'unixepoch') + strftime('%m', {_SECONDS}, 'unixepoch') - 1"


FORMS_OF_MENTIONS = (
    "SELECT concept_id, form, concept_kind, count(*) FROM mentions GROUP BY concept_id, form, concept_kind"
)
NEIGHBOURS_OF_MENTIONS = (
    f"SELECT a.concept_id AS concept_id, b.concept_id AS other_id, {_MONTH} AS month, count(*) "
    "FROM mentions a JOIN mentions b "
    "ON b.kind = a.kind AND b.owner_id = a.owner_id AND b.concept_id <> a.concept_id GROUP BY 1, 2, 3"
)


def _unequal(one: str, other: str) -> str:
    """Return a query for the concepts of the rows in which two queries differ."""
    both = (f"SELECT concept_id FROM (SELECT {a} EXCEPT SELECT {b})" for a, b in ((one, other), (other, one)))
    return " UNION ".join(both)


RULES = {
    "memory {} has no passage": (
        "SELECT id FROM memories m WHERE NOT EXISTS "
        "(SELECT 1 FROM passages p WHERE p.kind = 'memory' AND p.owner_id = m.id AND p.fact_id IS NULL)"
    ),
    "passage {} belongs to no memory of its namespace": (
        "SELECT id FROM passages p WHERE kind = 'memory' AND NOT EXISTS "
        "(SELECT 1 FROM memories m WHERE m.id = p.owner_id AND m.namespace_id = p.namespace_id)"
    ),
    "passage {} does not say what its memory says": (
        "SELECT p.id FROM passages p JOIN memories m ON p.kind = 'memory' AND m.id = p.owner_id WHERE "
        "(p.source, p.archived, p.occurred_at, p.dated) IS DISTINCT FROM "
        "(m.source, m.archived, coalesce(m.document_at, m.created_at), "
        "CASE WHEN m.document_at IS NULL THEN 0 ELSE 1 END)"
    ),
    "passage {} is not part of its memory's text": (
        "SELECT p.id FROM passages p JOIN memories m ON p.kind = 'memory' AND m.id = p.owner_id "
        "WHERE p.fact_id IS NULL AND instr(m.text, p.text) = 0 AND p.text <> ''"
    ),
    "passage {} is not part of a fact of its memory": (
        "SELECT p.id FROM passages p WHERE p.fact_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM facts f "
        "WHERE f.id = p.fact_id AND p.kind = 'memory' AND f.memory_id = p.owner_id AND instr(f.text, p.text) > 0)"
    ),
    "fact {} has no passage and says something else than its memory, or has one and says the same": (
        "SELECT f.id FROM facts f JOIN memories m ON m.id = f.memory_id WHERE (f.text = m.text) = EXISTS "
        "(SELECT 1 FROM passages p WHERE p.kind = 'memory' AND p.owner_id = m.id AND p.fact_id = f.id)"
    ),
    "fact {} lies in another namespace than its memory": (
        "SELECT f.id FROM facts f JOIN memories m ON m.id = f.memory_id WHERE f.namespace_id <> m.namespace_id"
    ),
    "a tag of memory {} lies in another namespace": (
        "SELECT t.memory_id FROM memory_tags t JOIN memories m ON m.id = t.memory_id "
        "WHERE t.namespace_id <> m.namespace_id"
    ),
    "feedback {} lies in another namespace than its memory": (
        "SELECT f.id FROM feedback f JOIN memories m ON m.id = f.memory_id WHERE f.namespace_id <> m.namespace_id"
    ),
    "missed memory {} lies in another namespace than its memory": (
        "SELECT f.id FROM missed_memories f JOIN memories m ON m.id = f.memory_id "
        "WHERE f.namespace_id <> m.namespace_id"
    ),
    "memory {} waits to be split in another namespace": (
        "SELECT u.memory_id FROM unsplit u JOIN memories m ON m.id = u.memory_id WHERE u.namespace_id <> m.namespace_id"
    ),
    "message {} that is indexed has no passage, or one that is not has some": (
        "SELECT id FROM messages m WHERE (indexed = 1) <> EXISTS "
        "(SELECT 1 FROM passages p WHERE p.kind = 'message' AND p.owner_id = m.id)"
    ),
    "passage {} belongs to no message of its namespace": (
        "SELECT id FROM passages p WHERE kind = 'message' AND NOT EXISTS "
        "(SELECT 1 FROM messages m WHERE m.id = p.owner_id AND m.namespace_id = p.namespace_id)"
    ),
    "passage {} does not say what its message says": (
        "SELECT p.id FROM passages p JOIN messages m ON p.kind = 'message' AND m.id = p.owner_id WHERE "
        "(p.occurred_at, p.session_id, p.position, p.role, p.user_id, p.speaker) IS DISTINCT FROM "
        "(m.created_at, m.session_id, m.position, m.role, m.user_id, m.speaker)"
    ),
    "passage {} is not its message's text": (
        "SELECT p.id FROM passages p JOIN messages m ON p.kind = 'message' AND m.id = p.owner_id "
        "WHERE (p.text, p.ordinal) IS DISTINCT FROM (m.content, 0)"
    ),
    "the log of index changes of namespace {} goes on after its last write": (
        "SELECT DISTINCT n.id FROM index_changes c JOIN namespaces n ON n.id = c.namespace_id "
        "WHERE c.change_seq > n.change_seq"
    ),
    "message {} lies in a session of another namespace": (
        "SELECT m.id FROM messages m JOIN sessions s ON s.id = m.session_id WHERE s.namespace_id <> m.namespace_id"
    ),
    "session {} counts below its greatest position": (
        "SELECT s.id FROM sessions s JOIN messages m ON m.session_id = s.id "
        "GROUP BY s.id HAVING max(m.position) >= s.next_position"
    ),
    "block {} has another history than its version says": (
        "SELECT id FROM blocks b WHERE version <> (SELECT max(version) FROM block_history h WHERE h.block_id = b.id)"
    ),
    "concept {} is not mentioned as often as it counts, or nowhere": (
        "SELECT id FROM concepts c WHERE owners <> (SELECT count(*) FROM mentions m WHERE m.concept_id = c.id) "
        "OR owners = 0 AND NOT EXISTS (SELECT 1 FROM claims l WHERE c.id IN (l.concept_id, l.other_id))"
    ),
    "concept {} has other forms than its mentions": _unequal(
        "concept_id, form, kind, owners FROM concept_forms",
        FORMS_OF_MENTIONS.removeprefix("SELECT "),
    ),
    "concept {} has other neighbours than its mentions": _unequal(
        "concept_id, other_id, month, owners FROM neighbours",
        NEIGHBOURS_OF_MENTIONS.removeprefix("SELECT "),
    ),
    "the graph of namespace {} counts other owners than there are": (
        "SELECT namespace_id FROM graphs g WHERE owners <> (SELECT count(*) FROM (SELECT DISTINCT m.kind, m.owner_id "
        "FROM mentions m JOIN concepts c ON c.id = m.concept_id WHERE c.namespace_id = g.namespace_id))"
    ),
    "a mention of concept {} is of nothing in its namespace, or of another time": (
        "SELECT concept_id FROM mentions m JOIN concepts c ON c.id = m.concept_id LEFT JOIN messages s "
        "ON m.kind = 'message' AND s.id = m.owner_id LEFT JOIN memories y ON m.kind = 'memory' AND y.id = m.owner_id "
        "WHERE coalesce(s.namespace_id, CASE WHEN y.archived = 0 THEN y.namespace_id END, 0) <> c.namespace_id "
        "OR coalesce(s.created_at, y.document_at, y.created_at) <> m.at"
    ),
    "{} waits to be read and is not there": (
        "SELECT u.kind || ' ' || u.owner_id FROM unread u LEFT JOIN messages s ON u.kind = 'message' "
        "AND s.id = u.owner_id LEFT JOIN memories y ON u.kind = 'memory' AND y.id = u.owner_id "
        "WHERE coalesce(s.namespace_id, CASE WHEN y.archived = 0 THEN y.namespace_id END, 0) <> u.namespace_id"
    ),
    "a claim about concept {} lies in another namespace": (
        "SELECT concept_id FROM claims l WHERE EXISTS (SELECT 1 FROM concepts c "
        "WHERE c.id IN (l.concept_id, l.other_id) AND c.namespace_id <> l.namespace_id)"
    ),
    "passage {} has no vector": (
        "SELECT id FROM passages p WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage_id = p.id "
        "AND v.model_id = (SELECT value FROM meta WHERE key = 'model_id'))"
    ),
    "passage {} has the vector of another model": (
        "SELECT passage_id FROM vectors WHERE model_id <> (SELECT value FROM meta WHERE key = 'model_id') AND "
        "NOT EXISTS (SELECT 1 FROM jobs WHERE kind = 'reembed' AND status IN ('queued', 'running'))"
    ),
    "passage {} has a vector of another length": (
        "SELECT passage_id FROM vectors v JOIN "
        "(SELECT model_id, max(length(vector)) AS longest FROM vectors GROUP BY model_id) m USING (model_id) "
        "WHERE length(vector) <> longest"
    ),
    "history of the deleted memory {} still holds text": (
        "SELECT memory_id FROM history h WHERE (before IS NOT NULL OR after IS NOT NULL) "
        "AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = h.memory_id)"
    ),
}

SQLITE_RULES = {
    **RULES,
    "the id counter of {} was moved too far by an import; stop the service and run `python app.py repair-ids`": (
        f"SELECT name FROM sqlite_sequence WHERE name = 'memories' AND seq > {MAX_COUNTED_ID}"
    ),
    "{} counts below its greatest id": " UNION ALL ".join(
        f"SELECT '{table}' WHERE (SELECT max(id) FROM {table}) > "
        f"(SELECT seq FROM sqlite_sequence WHERE name = '{table}')"
        for table in COUNTED
    ),
}
"""Also those about SQLite's counters of ids."""


_SHAPES: Mapping[str, tuple[Any, str]] = {
    "agents": (
        tuple[int, str, JsonObject | None, JsonObject, datetime],
        "namespace_id, uid, metadata, policy, created_at",
    ),
    "users": (tuple[int, str, datetime], "id, name, created_at"),
    "sessions": (
        tuple[int, str, str | None, JsonObject | None, datetime, datetime | None, datetime | None],
        "id, name, title, metadata, started_at, last_message_at, ended_at",
    ),
    "messages": (
        tuple[int, str, MessageRole, str, str | None, JsonObject | None, datetime, datetime | None],
        "id, uid, role, content, speaker, metadata, created_at, edited_at",
    ),
    "message_versions": (
        tuple[int, str, JsonObject | None, datetime | None, datetime],
        "id, content, metadata, edited_at, replaced_at",
    ),
    "blocks": (
        tuple[int, str, str, str, str | None, datetime, datetime],
        "id, uid, label, value, description, created_at, updated_at",
    ),
    "block_history": (tuple[int, str, str | None, str, datetime], "block_id, value, description, actor, at"),
    "memories": (Memory, MEMORY_COLUMNS),
    "memory_tags": (tuple[int, str, str, datetime], "memory_id, folded, tag, added_at"),
    "links": (Link, "from_id, to_id, type, created_at"),
    "facts": (Fact, "id, text, made_by, created_at"),
    "feedback": (FeedbackEntry, "id, created_at, memory_id, query, useful, search_id"),
    "missed_memories": (tuple[int, int, str | None, str, datetime], "id, memory_id, context, actor, created_at"),
    "history": (
        tuple[int, str, str, str | None, datetime, JsonObject | None, JsonObject | None],
        "id, action, actor, job_id, at, before, after",
    ),
    "passages": (Passage, PASSAGE_COLUMNS),
}
"""How the rows of a table are read, and the columns, of which the first is the id."""


class RowId(NamedTuple):
    table: str
    id: int


def unreadable(connection: Connection) -> list[RowId]:
    """Return the rows that reads leave out."""
    found = [
        RowId(table, row_id)
        for table, (shape, columns) in _SHAPES.items()
        for row_id in unreadable_ids(connection, shape, f"SELECT {columns} FROM {table}")
    ]
    rows = select(connection, tuple[int, bytes], "SELECT passage_id, vector FROM vectors")
    return found + [RowId("vectors", passage_id) for passage_id, vector in rows if not _is_finite(vector)]


def _is_finite(vector: bytes) -> bool:
    if len(vector) % _FLOAT_BYTES:
        return False
    found = np.frombuffer(vector, dtype=np.float32)
    return isfinite(found.dot(found))


def problems(connection: Connection) -> list[str]:
    """Return one sentence for each broken rule; empty if the database is consistent."""
    found = [f"SQLite: {row[0]}" for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    found += [f"SQLite: a row of {row[0]} refers to nothing" for row in connection.execute("PRAGMA foreign_key_check")]
    found += losses.recorded(connection)
    found += _row_problems(connection)
    return found + broken_rules(connection, SQLITE_RULES, (apsw.Error, UnicodeDecodeError))


def broken_rules(
    connection: Connection, rules: Mapping[str, str] = RULES, damages: tuple[type[Exception], ...] = ()
) -> list[str]:
    """Return one sentence for each rule that is broken, or cannot be checked because of damaged rows.

    :param rules: Sentences, with a query for the ids that they are about. :param damages: The errors of damaged rows.
    """
    found: list[str] = []
    for sentence, query in rules.items():
        try:
            found += [sentence.format(row[0]) for row in connection.execute(query)]
        except damages as error:
            found.append(f"a rule could not be checked because of damaged rows ({error}): {sentence}")
    return found


def _row_problems(connection: Connection) -> list[str]:
    """Return the rows that cannot be read, or are not as they were written."""
    try:
        left_out = unreadable(connection)
    except apsw.Error as error:
        return [f"SQLite: rows could not be checked ({error})"]
    found = [f"{table} {row_id} cannot be read" for table, row_id in left_out]
    known = set(left_out)
    for covered in COVERED:
        try:
            differing = differences(connection, covered.table)
        except apsw.Error as error:
            found.append(f"SQLite: the checksums of {covered.table} could not be compared ({error})")
        else:
            found += [one.sentence for one in differing if RowId(one.table, one.id) not in known]
    return found
