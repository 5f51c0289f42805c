"""Resolves a selection by name to rows: an agent, or a user, session, message and so on of an agent.

It runs on the current database and, for an erasure, on backups, which may have an older schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from souvenir.core.stored_json import to_json
from souvenir.core.types import SourceFilter, SourceMatch
from souvenir.store.learning import extractions
from souvenir.store.namespaces import source_condition
from souvenir.store.pending_removals import PARTIES, TABLES, Removable, Target, supports
from souvenir.store.rows import first, select
from souvenir.store.sql import Connection


class Chooses(StrEnum):
    """The kind of object that a selection names within its agent."""

    AGENT = "agent_name"
    USER = "user"
    SESSION = "session_id"
    MESSAGE = "message_id"
    MEMORY = "memory_id"
    MESSAGES = "message_ids"
    MEMORIES = "memory_ids"
    SOURCE = "source"
    BLOCK = "block"


KINDS = {
    Chooses.AGENT: Removable.NAMESPACE,
    Chooses.USER: Removable.USER,
    Chooses.SESSION: Removable.SESSION,
    Chooses.MESSAGE: Removable.MESSAGE,
    Chooses.MEMORY: Removable.MEMORY,
    Chooses.MESSAGES: Removable.MESSAGE,
    Chooses.MEMORIES: Removable.MEMORY,
    Chooses.SOURCE: Removable.MEMORY,
    Chooses.BLOCK: Removable.BLOCK,
}

_NAMES = {
    Chooses.USER: "name",
    Chooses.SESSION: "name",
    Chooses.MESSAGE: "uid",
    Chooses.MEMORY: "id",
    Chooses.MESSAGES: "uid",
    Chooses.MEMORIES: "id",
    Chooses.BLOCK: "label",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """:param value: The public name or id, or several ids. A source is a path and includes everything below it."""

    namespace: str
    chooses: Chooses
    value: str | int | tuple[str | int, ...]


def resolve(connection: Connection, selection: Selection) -> list[Target]:
    """Return the rows that a selection names; empty if there are none or the schema does not have the kind."""
    kind = KINDS[selection.chooses]
    namespace_id = first(connection, int, "SELECT id FROM namespaces WHERE name = ?", (selection.namespace,))
    if namespace_id is None or not supports(connection, kind):
        return []
    if selection.chooses is Chooses.AGENT:
        return [Target(kind, namespace_id)]
    if selection.chooses is Chooses.SOURCE:
        condition, parameters = source_condition(SourceFilter(str(selection.value), SourceMatch.PATH))
    else:
        values = selection.value if isinstance(selection.value, tuple) else (selection.value,)
        column = _NAMES[selection.chooses]
        condition = f"{column} IN (SELECT {'value' if column == 'id' else 'atom'} FROM json_each(?))"
        parameters = [to_json(list(values))]
    rows = select(
        connection,
        int,
        f"SELECT id FROM {TABLES[kind]} WHERE namespace_id = ? AND {condition} ORDER BY id",
        (namespace_id, *parameters),
    )
    targets = [Target(kind, id_) for id_ in rows]
    if kind in PARTIES:
        # A transcript may name a user or session without stored messages.
        memories = extractions.memories_of(connection, namespace_id, PARTIES[kind], str(selection.value))
        targets += [Target(Removable.MEMORY, memory_id) for memory_id in memories]
    return targets
