"""The newest messages of a session that are in the context of its conversation, and where that context begins."""

from __future__ import annotations

from typing import Any

import apsw

from souvenir.types import MessageRole

Row = tuple[int, MessageRole, str, int]
"""Position, role, content, and when it was said in microseconds."""


def change_seq(connection: apsw.Connection, namespace_id: int) -> int:
    """The number of the namespace's last write: what was read at the same number is what is there. -1 if it is gone."""
    found = connection.execute("SELECT change_seq FROM namespaces WHERE id = ?", (namespace_id,)).get
    return -1 if found is None else int(found)


def newest(connection: apsw.Connection, session_row: int, limit: int) -> list[Row]:
    """In the order in which they came; none of a session that has ended."""
    rows: Any = connection.execute(
        "SELECT m.position, m.role, m.content, m.created_at FROM sessions s JOIN messages m ON m.session_id = s.id "
        "AND m.position >= s.window_from WHERE s.id = ? AND s.ended_at IS NULL ORDER BY m.position DESC LIMIT ?",
        (session_row, limit),
    )
    return [(position, MessageRole(role), content, at) for position, role, content, at in rows][::-1]


def clear(connection: apsw.Connection, session_row: int) -> None:
    """Let the context begin with the next message."""
    connection.execute("UPDATE sessions SET window_from = next_position WHERE id = ?", (session_row,))
