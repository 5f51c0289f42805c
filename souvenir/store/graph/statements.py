"""Statements of messages and definitions of concepts, which go with their messages and mentions.

Both are derived from the texts when these are analysed. Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import NamedTuple

from souvenir.core.ended_roles import End
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import ConceptKind, RecordKind
from souvenir.core.types.statements import Definition, Statement, StatementKind
from souvenir.store.privacy import Hidden
from souvenir.store.rows import CHOSEN, grouped, ids_parameter, readable
from souvenir.store.sql import Connection


class Stated(NamedTuple):
    """A stored statement; its fields are those of `Statement`, with days as the times at which they begin in UTC."""

    id: int
    message_id: int
    kind: StatementKind
    sentence: str
    terms: str
    attribute: str | None
    value: str | None
    due: datetime | None
    replaced: datetime | None
    at: datetime


class StoredDefinition(NamedTuple):
    """The definition of a concept by one of its mentions, with the kind of this mention."""

    kind: RecordKind
    owner_id: int
    sentence: str
    quality: int
    role: str | None
    at: datetime
    concept_kind: ConceptKind | None


class MessageMention(NamedTuple):
    """A concept that a message mentions, in this form and with this kind."""

    concept_id: int
    form: str
    kind: ConceptKind | None


MAX_ENDS = 256
"""Maximum number of ends that are read, the latest ones."""

_BEFORE_ALL = -(2**62)

_COLUMNS = "id, message_id, kind, sentence, terms, attribute, value, due, replaced, at"


def write(
    connection: Connection, namespace_id: int, statements: Iterable[tuple[int, datetime, Sequence[Statement]]]
) -> None:
    """Store the statements of messages, replacing earlier ones.

    :param statements: The id and the time of each message, and its statements.
    """
    found = list(statements)
    forget(connection, [message_id for message_id, _, _ in found])
    connection.executemany(
        "INSERT INTO statements (namespace_id, message_id, kind, sentence, terms, attribute, value, due, replaced, "
        "at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(namespace_id, message_id, one.kind.value, one.sentence, one.terms, one.attribute, one.value),
                *(_day_us(one.due), _day_us(one.replaced), to_us(at)),
            )
            for message_id, at, stated in found
            for one in stated
        ],
    )


def forget(connection: Connection, message_ids: Iterable[int]) -> None:
    """Delete the statements of messages, which were edited."""
    connection.execute(f"DELETE FROM statements WHERE message_id {CHOSEN}", (ids_parameter(message_ids),))


def write_definitions(
    connection: Connection, namespace_id: int, definitions: Iterable[tuple[RecordKind, int, int, datetime, Definition]]
) -> None:
    """Store the definitions of mentions: kind and id of the text, id of the concept, time of the text, definition."""
    connection.executemany(
        "INSERT INTO definitions (namespace_id, kind, owner_id, concept_id, sentence, quality, role, at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (namespace_id, kind.value, owner_id, concept_id, one.sentence, one.quality, one.role, to_us(at))
            for kind, owner_id, concept_id, at, one in definitions
        ],
    )


def forget_definitions(connection: Connection, kind: RecordKind, owner_ids: Iterable[int]) -> None:
    """Delete the definitions in these messages or memories, whose mentions are deleted."""
    connection.execute(
        f"DELETE FROM definitions WHERE kind = ? AND owner_id {CHOSEN}", (kind.value, ids_parameter(owner_ids))
    )


def best_definitions(
    connection: Connection, concept_ids: Iterable[int], hidden: Hidden, since: Mapping[int, datetime] | None = None
) -> dict[int, StoredDefinition]:
    """Return the best definition of each concept that has one, the latest of several; spellings are not merged.

    :param hidden: Texts whose definitions are left out. :param since: Only those after this time, by concept.
    """
    shown, parameters = hidden.no_owner("d")
    query = (
        "SELECT id, concept_id, kind, owner_id, sentence, quality, role, at, (SELECT concept_kind FROM mentions m "
        "WHERE m.kind = f.kind AND m.owner_id = f.owner_id AND m.concept_id = f.concept_id "
        "AND m.concept_kind NOT IN ('date', 'quantity')) FROM definitions f WHERE id IN (SELECT "
        "(SELECT d.id FROM definitions d WHERE d.concept_id = CAST(j.value ->> 0 AS BIGINT) "
        f"AND d.at > CAST(j.value ->> 1 AS BIGINT){shown} "
        "ORDER BY d.quality DESC, d.at DESC, d.owner_id DESC, d.kind LIMIT 1) FROM json_each(?) j)"
    )
    after = {} if since is None else {id_: to_us(at) for id_, at in since.items()}
    parameters = *parameters, to_json([[id_, after.get(id_, _BEFORE_ALL)] for id_ in concept_ids])
    rows = readable(connection, tuple[int, int, StoredDefinition], query, parameters, table="definitions")
    return {concept_id: found for _, concept_id, found in rows}


def ends(connection: Connection, namespace_id: int, since: datetime, hidden: Hidden) -> list[End]:
    """Return the latest ends of roles that messages state since a time.

    :param hidden: Texts that end nothing.
    """
    shown, parameters = hidden.no_owner("e")
    query = (
        "SELECT id, attribute, value, at FROM (SELECT id, 'message' AS kind, message_id AS owner_id, attribute, value, "
        "at FROM statements WHERE namespace_id = ? AND kind = 'end' AND at >= ? ORDER BY at DESC LIMIT ?) e "
        f"WHERE attribute IS NOT NULL{shown}"
    )
    rows = readable(
        connection, tuple[int, End], query, (namespace_id, to_us(since), MAX_ENDS, *parameters), table="statements"
    )
    return [end for _, end in rows]


def due_between(
    connection: Connection, namespace_id: int, since: datetime, until: datetime, *, limit: int
) -> list[Stated]:
    """Return the statements with a day in a time, the latest day first."""
    query = (
        f"SELECT {_COLUMNS} FROM statements WHERE namespace_id = ? AND due BETWEEN ? AND ? "
        "ORDER BY due DESC, id DESC LIMIT ?"
    )
    return list(
        readable(connection, Stated, query, (namespace_id, to_us(since), to_us(until), limit), table="statements")
    )


def latest(
    connection: Connection, namespace_id: int, kind: StatementKind, since: datetime, until: datetime, *, limit: int
) -> list[Stated]:
    """Return the statements of a kind in a time, newest first."""
    query = (
        f"SELECT {_COLUMNS} FROM statements WHERE namespace_id = ? AND kind = ? AND at BETWEEN ? AND ? "
        "ORDER BY at DESC, id DESC LIMIT ?"
    )
    return list(
        readable(
            connection, Stated, query, (namespace_id, kind.value, to_us(since), to_us(until), limit), table="statements"
        )
    )


def mentions_of(connection: Connection, message_ids: Iterable[int]) -> Mapping[int, Sequence[MessageMention]]:
    """Return the mentions of each message, by its id."""
    query = (
        "SELECT concept_id, owner_id, concept_id, form, concept_kind FROM mentions "
        f"WHERE kind = 'message' AND owner_id {CHOSEN} ORDER BY owner_id, concept_id"
    )
    rows = readable(connection, tuple[int, int, MessageMention], query, (ids_parameter(message_ids),), table="mentions")
    return defaultdict(list, grouped((message_id, mention) for _, message_id, mention in rows))


def _day_us(day: date | None) -> int | None:
    return None if day is None else to_us(datetime.combine(day, time(), UTC))
