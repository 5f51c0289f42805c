"""Rows of memory blocks, the labelled texts of an agent, and of their versions.

Invariant: the newest version in `block_history` equals the block's current state.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from souvenir.core.errors import BlockUnreadable
from souvenir.core.timestamps import to_us
from souvenir.store.rows import UNREADABLE, as_text, first, readable
from souvenir.store.sql import NO_LIMIT, Connection
from souvenir.store.transaction import Transaction

_COLUMNS = (
    "b.id, b.uid, a.uid, b.label, b.value, b.description, b.max_chars, b.read_only, b.version, b.created_at, "
    "b.updated_at"
)
_FROM = f"SELECT {_COLUMNS} FROM blocks b JOIN agents a ON a.namespace_id = b.namespace_id"
_FROM_THEN = (
    "SELECT b.id, b.uid, a.uid, b.label, h.value, h.description, h.max_chars, h.read_only, h.version, b.created_at, "
    "h.at FROM blocks b JOIN agents a ON a.namespace_id = b.namespace_id JOIN block_history h ON h.block_id = b.id "
    "AND h.version = (SELECT max(version) FROM block_history WHERE block_id = b.id AND at <= ?)"
)
"""The blocks as they were at a time; the rest of the query follows."""


@dataclass(frozen=True, slots=True)
class BlockDraft:
    """Fields of a new or changed block. `max_chars` limits the value; `read_only` guards against accidental changes."""

    label: str
    value: str
    description: str | None
    max_chars: int
    read_only: bool


@dataclass(frozen=True, slots=True)
class Block:
    """`version` counts the changes from 1; `agent_uid` is the agent's public id."""

    id: int
    uid: str
    agent_uid: str
    label: str
    value: str
    description: str | None
    max_chars: int
    read_only: bool
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class BlockVersion:
    """A block's state from `at` on, and its author."""

    version: int
    value: str
    description: str | None
    max_chars: int
    read_only: bool
    actor: str
    at: datetime


def find(connection: Connection, namespace_id: int, label: str, as_of: datetime | None = None) -> Block | None:
    """Return the block, as it was at a time if one is given.

    :raises BlockUnreadable: If it is damaged.
    """
    chosen, given = _at(as_of)
    try:
        return first(
            connection, Block, f"{chosen} WHERE b.namespace_id = ? AND b.label = ?", (*given, namespace_id, label)
        )
    except UNREADABLE as error:
        raise BlockUnreadable(label) from error


def key_of(connection: Connection, namespace_id: int, label: str) -> tuple[int, str] | None:
    """Return id and public id of a block, even if it is damaged."""
    query = "SELECT id, CAST(uid AS BLOB) FROM blocks WHERE namespace_id = ? AND label = ?"
    row = first(connection, tuple[int, bytes], query, (namespace_id, label))
    return None if row is None else (row[0], as_text(row[1]))


def page(
    connection: Connection,
    namespace_id: int,
    *,
    offset: int = 0,
    limit: int = NO_LIMIT,
    as_of: datetime | None = None,
) -> tuple[list[Block], int]:
    """Return blocks in the order of their creation, and the total; a negative limit means no limit.

    :param as_of: As they were then; None for now.
    """
    chosen, given = _at(as_of)
    rows = list(
        readable(
            connection,
            Block,
            f"{chosen} WHERE b.namespace_id = ? ORDER BY b.id LIMIT ? OFFSET ?",
            (*given, namespace_id, limit, offset),
            table="blocks",
        )
    )
    until = "" if as_of is None else " AND created_at <= ?"
    total = connection.execute(f"SELECT count(*) FROM blocks WHERE namespace_id = ?{until}", (namespace_id, *given)).get
    return list(rows), int(total)


def _at(as_of: datetime | None) -> tuple[str, tuple[int, ...]]:
    """Return the query of the blocks at a time, and its parameters."""
    return (_FROM, ()) if as_of is None else (_FROM_THEN, (to_us(as_of),))


def versions(connection: Connection, block_id: int, *, offset: int, limit: int) -> tuple[list[BlockVersion], int]:
    """Return versions, newest first, and the total."""
    rows = list(
        readable(
            connection,
            tuple[int, BlockVersion],
            "SELECT block_id, version, value, description, max_chars, read_only, actor, at FROM block_history "
            "WHERE block_id = ? ORDER BY version DESC LIMIT ? OFFSET ?",
            (block_id, limit, offset),
            table="block_history",
        )
    )
    total = connection.execute("SELECT count(*) FROM block_history WHERE block_id = ?", (block_id,)).get
    return [version for _, version in rows], int(total)


def insert(tx: Transaction, draft: BlockDraft) -> None:
    """Insert a block. The label must be free, and the namespace an agent."""
    now = to_us(tx.now)
    tx.connection.execute(
        "INSERT INTO blocks (uid, namespace_id, label, value, description, max_chars, read_only, version, created_at, "
        "updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?)",
        (
            *(str(uuid.uuid4()), tx.namespace_id, draft.label, draft.value),
            *(draft.description, draft.max_chars, draft.read_only, now, now),
        ),
    )
    _keep_version(tx, draft.label)


def update(tx: Transaction, draft: BlockDraft) -> None:
    """Write the next version of the block that has the draft's label."""
    tx.connection.execute(
        "UPDATE blocks SET value = ?, description = ?, max_chars = ?, read_only = ?, version = version + 1, "
        "updated_at = ? WHERE namespace_id = ? AND label = ?",
        (
            *(draft.value, draft.description, draft.max_chars, draft.read_only),
            *(to_us(tx.now), tx.namespace_id, draft.label),
        ),
    )
    _keep_version(tx, draft.label)


def _keep_version(tx: Transaction, label: str) -> None:
    tx.connection.execute(
        "INSERT INTO block_history (block_id, version, value, description, max_chars, read_only, actor, at) "
        "SELECT id, version, value, description, max_chars, read_only, ?, updated_at FROM blocks "
        "WHERE namespace_id = ? AND label = ?",
        (tx.scope.actor, tx.namespace_id, label),
    )
