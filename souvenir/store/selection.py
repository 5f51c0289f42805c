"""What a caller means by a name: the rows of an agent, or those of a user, a session, a message and so on of it.

It is asked of the present database and, for an erasure, of backups, which may be of an older schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import apsw

from souvenir.store import learned
from souvenir.store.erasure import PARTIES, TABLES, Removable, Target, knows
from souvenir.store.reads import source_condition
from souvenir.types import SourceFilter, SourceMatch


class Chooses(StrEnum):
    """By what something is chosen, beside its agent."""

    AGENT = "agent_name"
    USER = "user"
    SESSION = "session_id"
    MESSAGE = "message_id"
    MEMORY = "memory_id"
    SOURCE = "source"
    BLOCK = "block"


KINDS = {
    Chooses.AGENT: Removable.NAMESPACE,
    Chooses.USER: Removable.USER,
    Chooses.SESSION: Removable.SESSION,
    Chooses.MESSAGE: Removable.MESSAGE,
    Chooses.MEMORY: Removable.MEMORY,
    Chooses.SOURCE: Removable.MEMORY,
    Chooses.BLOCK: Removable.BLOCK,
}

_NAMES = {
    Chooses.USER: "name",
    Chooses.SESSION: "name",
    Chooses.MESSAGE: "uid",
    Chooses.MEMORY: "id",
    Chooses.BLOCK: "label",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """:param value: What callers call it. A source is a path, and means what lies below it too."""

    namespace: str
    chooses: Chooses
    value: str | int


def resolve(connection: apsw.Connection, selection: Selection) -> list[Target]:
    """What a database has of it; nothing if it is not there, or if nothing of the kind is."""
    kind = KINDS[selection.chooses]
    row: Any = connection.execute("SELECT id FROM namespaces WHERE name = ?", (selection.namespace,)).fetchone()
    if row is None or not knows(connection, kind):
        return []
    if selection.chooses is Chooses.AGENT:
        return [Target(kind, row[0])]
    if selection.chooses is Chooses.SOURCE:
        condition, parameters = source_condition(SourceFilter(str(selection.value), SourceMatch.PATH))
    else:
        condition, parameters = f"{_NAMES[selection.chooses]} = ?", [selection.value]
    rows: Any = connection.execute(
        f"SELECT id FROM {TABLES[kind]} WHERE namespace_id = ? AND {condition} ORDER BY id", (row[0], *parameters)
    )
    targets = [Target(kind, id_) for (id_,) in rows]
    if kind in PARTIES:
        # A transcript may name somebody of whom no message is stored.
        memories = learned.memories_of(connection, row[0], PARTIES[kind], str(selection.value))
        targets += [Target(Removable.MEMORY, memory_id) for memory_id in memories]
    return targets
