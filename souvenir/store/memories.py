"""The rows of memories, written; what they own and what is noted of them is others' matter."""

from __future__ import annotations

import apsw

from souvenir.moments import to_us
from souvenir.store.rows import to_json
from souvenir.store.transfers import kept_id
from souvenir.types import Memory, MemoryDraft, Origin, OriginClass


def insert(
    connection: apsw.Connection, namespace_id: int, draft: MemoryDraft, origin: Origin, origin_class: OriginClass
) -> int:
    """Returns the id."""
    memory_id = connection.execute(
        "INSERT INTO memories (id, namespace_id, text, source, key, metadata, document_at, created_at, updated_at, "
        "pinned, archived, origin_class, valid_to) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            kept_id(connection, origin.id),
            namespace_id,
            draft.text,
            draft.source,
            draft.key,
            to_json(dict(draft.metadata)),
            None if draft.document_at is None else to_us(draft.document_at),
            to_us(origin.created_at),
            to_us(origin.updated_at),
            draft.pinned,
            draft.archived,
            origin_class.value,
            None if draft.valid_to is None else to_us(draft.valid_to),
        ),
    ).get
    return int(memory_id)


def update(connection: apsw.Connection, after: Memory) -> None:
    connection.execute(
        "UPDATE memories SET text = ?, source = ?, metadata = ?, document_at = ?, created_at = ?, updated_at = ?, "
        "pinned = ?, archived = ?, origin_class = ?, valid_to = ? WHERE id = ?",
        (
            after.text,
            after.source,
            to_json(dict(after.metadata)),
            None if after.document_at is None else to_us(after.document_at),
            to_us(after.created_at),
            to_us(after.updated_at),
            after.pinned,
            after.archived,
            after.origin_class.value,
            None if after.valid_to is None else to_us(after.valid_to),
            after.id,
        ),
    )
