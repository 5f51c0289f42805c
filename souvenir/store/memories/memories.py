"""Rows of memories and their tags, and their states in the history.

Changes are undone from these states, and past versions are read from them. Facts, passages and links of a memory are
written by `souvenir.store.transaction`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import not_
from typing import Annotated, Any

from pydantic import Field

from souvenir.core.labels import fold, joined_notes, without_notes, without_origin
from souvenir.core.stored_json import Microseconds, StoredJson, to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import Fact, FactsBy, JsonObject, Memory, MemoryDraft, MemoryPatch, Origin, OriginClass
from souvenir.store.admin.keys import key_id_of
from souvenir.store.graph.relations import ENTITY_TYPE
from souvenir.store.rows import ids_parameter
from souvenir.store.sql import Connection

MAX_KEPT_ID = 2**40
"""An import keeps no id above this. The ids of MCP hold 2**46, and those of JSON clients 2**53: counting on from here
reaches neither."""

MAX_KEPT_GAP = 1_000_000
"""An import keeps no id further than this from the last one, so that no single line uses up what can be kept."""


def metadata_after(memory: Memory, patch: MemoryPatch) -> JsonObject:
    """Apply a patch to the metadata of a memory.

    A text drops the notes of the last one, and another text also where the last one came from; new facts of the same
    text add to the notes.
    """
    metadata, said = memory.metadata, patch.metadata or {}
    if patch.text is not None and patch.text != memory.text:
        metadata = without_origin(metadata)
    merged = {**(metadata if patch.text is None else without_notes(metadata)), **said}
    patched = {key: value for key, value in merged.items() if value is not None or key not in said}
    if patch.text is None and patch.facts is not None:
        return {**patched, **joined_notes(metadata, said)}
    return patched


def insert(
    connection: Connection,
    namespace_id: int,
    draft: MemoryDraft,
    origin: Origin,
    origin_class: OriginClass,
    *,
    actor: str,
) -> int:
    """Insert a row and return its id.

    :param actor: If it acts with a key, the memory counts towards the quotas of that key.
    """
    kept = kept_id(connection, origin.id)
    columns, places, ids = ("", "", ()) if kept is None else ("id, ", "?, ", (kept,))
    memory_id = connection.execute(
        f"INSERT INTO memories ({columns}namespace_id, text, source, key, metadata, document_at, created_at, "
        f"updated_at, pinned, archived, origin_class, valid_to, key_id) "
        f"VALUES ({places}?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            *ids,
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
            key_id_of(actor),
        ),
    ).get
    return int(memory_id)


def update(connection: Connection, after: Memory) -> None:
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


# --- states in the history -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FactState:
    """A fact. One that an import brought along has no id of this database, and 0 here."""

    id: int = 0
    text: str
    made_by: FactsBy
    created_at: Microseconds

    @classmethod
    def of(cls, fact: Fact) -> FactState:
        return cls(id=fact.id, text=fact.text, made_by=fact.made_by, created_at=fact.created_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """Every column, tags and facts. Older rows lack fields that were added later: origin, end of validity, times."""

    text: str
    source: str
    key: str | None = None
    metadata: JsonObject
    document_at: Microseconds | None = None
    pinned: bool
    archived: bool
    origin_class: OriginClass = OriginClass.USER
    valid_to: Microseconds | None = None
    created_at: Microseconds | None = None
    updated_at: Microseconds | None = None
    tags: Annotated[tuple[str, ...], Field(exclude_if=not_)] = ()
    facts: Annotated[tuple[FactState, ...], Field(exclude_if=not_)] = ()


MEMORY_STATE = StoredJson(MemoryState, unknown="ignore")
_FACT_STATE = StoredJson(FactState, unknown="ignore")


def fact_state(fact: Fact) -> dict[str, Any]:
    return _FACT_STATE.dump(FactState.of(fact))


def written_state(memory: Memory) -> str:
    """Return the state of a memory as JSON for its history."""
    state = MemoryState(
        text=memory.text,
        source=memory.source,
        key=memory.key,
        metadata=memory.metadata,
        document_at=memory.document_at,
        pinned=memory.pinned,
        archived=memory.archived,
        origin_class=memory.origin_class,
        valid_to=memory.valid_to,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        tags=memory.tags,
        facts=tuple(map(FactState.of, memory.facts)),
    )
    return to_json(MEMORY_STATE.dump(state))


def concept_state(memory: Memory) -> tuple[object, ...]:
    """Return the values on which the concepts of a memory depend."""
    return memory.text, memory.archived, memory.occurred_at, memory.source, memory.metadata.get(ENTITY_TYPE)


def last_memory_id(connection: Connection) -> int:
    """Return the highest id that was ever issued."""
    return int(connection.execute("SELECT seq FROM issued_ids WHERE name = 'memories'").get or 0)


def kept_id(connection: Connection, wanted: int | None) -> int | None:
    """Return the id if neither it nor a later one was ever issued and it is no leap, else None, for a new one."""
    if wanted is None:
        return None
    last = last_memory_id(connection)
    return wanted if last < wanted <= min(last + MAX_KEPT_GAP, MAX_KEPT_ID) else None


def put_tags(
    connection: Connection, namespace_id: int, memory_id: int, tags: Sequence[str], now: datetime
) -> tuple[str, ...]:
    """Set the tags of a memory; existing ones keep their times. Returns them in the order of `reads.with_tags`."""
    of_folded = {fold(tag): tag for tag in tags}
    connection.execute(
        "DELETE FROM memory_tags WHERE memory_id = ? AND folded NOT IN (SELECT atom FROM json_each(?))",
        (memory_id, to_json(list(of_folded))),
    )
    connection.executemany(
        "INSERT INTO memory_tags (memory_id, folded, namespace_id, tag, added_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (memory_id, folded) DO UPDATE SET tag = excluded.tag",
        [(memory_id, folded, namespace_id, tag, to_us(now)) for folded, tag in of_folded.items()],
    )
    return tuple(of_folded[folded] for folded in sorted(of_folded))


def carry_tag_times(connection: Connection, memory_ids: Iterable[int], new_id: int) -> None:
    """Backdate the tags of a memory to the times that they have at the memories which it replaces."""
    connection.execute(
        "UPDATE memory_tags SET added_at = min(added_at, coalesce((SELECT min(o.added_at) FROM memory_tags o "
        "WHERE o.folded = memory_tags.folded AND o.memory_id IN (SELECT value FROM json_each(?))), added_at)) "
        "WHERE memory_id = ?",
        (ids_parameter(memory_ids), new_id),
    )
