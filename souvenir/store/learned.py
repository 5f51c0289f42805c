"""With whom, and in which session, memories were learned, by the names that callers use. Nobody can set it but a job.

It stands beside the metadata: no caller changes it, and no privacy rule redacts a name that is looked for later. What
takes the place of a memory has it too. It goes with its memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import apsw

from souvenir.store import sessions
from souvenir.store.rows import ids_parameter
from souvenir.store.schema import has_table


class Party(StrEnum):
    """Whom or what a memory can be learned with."""

    USER = "user"
    SESSION = "session"


LearnedWith = Mapping[str, Sequence[str]]
"""Names by party, as JSON holds it."""


def with_whom(connection: apsw.Connection, namespace: str, user: str | None, session: str | None) -> LearnedWith:
    """A conversation's user and session; who is not named is whom the session is with."""
    if user is None and session is not None:
        row: Any = connection.execute("SELECT id FROM namespaces WHERE name = ?", (namespace,)).fetchone()
        found = None if row is None else sessions.find(connection, row[0], session)
        user = None if found is None else found.user
    named = {Party.USER.value: user, Party.SESSION.value: session}
    return {party: [name] for party, name in named.items() if name is not None}


def together(several: Iterable[LearnedWith]) -> LearnedWith:
    """What is learned from all of these at once."""
    names: dict[str, dict[str, None]] = {}
    for one in several:
        for party, of_party in one.items():
            names.setdefault(party, {}).update(dict.fromkeys(of_party))
    return {party: list(of_party) for party, of_party in names.items()}


def note(connection: apsw.Connection, memory_id: int, learned_with: LearnedWith) -> None:
    """Add to what is known of a memory."""
    connection.executemany(
        "INSERT OR IGNORE INTO learned_with (kind, name, memory_id) VALUES (?, ?, ?)",
        [(party, name, memory_id) for party, names in learned_with.items() for name in names],
    )


def carry(connection: apsw.Connection, memory_ids: Iterable[int], new_id: int) -> None:
    """Let a memory that takes the place of others have what is known of them."""
    connection.execute(
        "INSERT OR IGNORE INTO learned_with (kind, name, memory_id) "
        "SELECT kind, name, ? FROM learned_with WHERE memory_id IN (SELECT value FROM json_each(?))",
        (new_id, ids_parameter(memory_ids)),
    )


def memories_of(connection: apsw.Connection, namespace_id: int, party: Party, name: str) -> list[int]:
    """Those that were learned with somebody, archived ones too; the database may be of an older schema."""
    if not has_table(connection, "learned_with"):
        return []
    rows: Any = connection.execute(
        "SELECT memory_id FROM learned_with JOIN memories ON id = memory_id "
        "WHERE kind = ? AND name = ? AND namespace_id = ? ORDER BY memory_id",
        (party.value, name, namespace_id),
    )
    return [memory_id for (memory_id,) in rows]
