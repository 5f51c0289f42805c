"""Checksums of rows, by which bytes that changed on disk are found although the page is sound.

Each covered table has a table of checksums, with one entry per row, or per owner of rows that have no id. Triggers of
the schema keep them true of every write. A change adds the difference of two checksums instead of computing a new one,
so a row that was damaged before the change stays different. Content that is derived, counters and queues are not
covered.

A checksum is the CRC-32 of the columns, which SQL joins before it is computed. It finds accidental changes; it does not
protect against deliberate changes of the file.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import apsw

from souvenir.store.sql import Connection

FUNCTION = "row_checksum"


@dataclass(frozen=True, slots=True)
class Covered:
    """A table with checksums.

    :param key: The integer column that identifies a row, or its owner; `0` for the whole table.
    :param columns: What is covered. :param reals: Those that are covered to a millionth only: their text form may
        depend on the release of SQLite.
    :param is_shared: Whether several rows may have one key. :param is_touched: Whether most updates change nothing.
    """

    table: str
    key: str
    columns: tuple[str, ...]
    reals: frozenset[str] = frozenset()
    is_shared: bool = False
    is_touched: bool = False

    @property
    def checksums(self) -> str:
        """The name of the table of its checksums."""
        return f"{self.table}_checksums"

    def of_row(self, row: str) -> str:
        """Return the SQL expression of the checksum of a row, called `row` in the statement."""
        values = ", ".join(self._value(row, column) for column in self.columns)
        return f"{FUNCTION}(CAST(concat_ws(x'1f', {values}) AS BLOB))"

    def _value(self, row: str, column: str) -> str:
        value = f"{row}.{column}"
        return f"CAST(round({value} * 1000000) AS INTEGER)" if column in self.reals else value

    def key_of(self, row: str) -> str:
        return self.key if self.key == "0" else f"{row}.{self.key}"

    @property
    def computed(self) -> str:
        """The SQL query of keys and checksums of all rows as they are now."""
        query = f"SELECT {self.key_of('t')} AS id, {{}} AS checksum FROM {self.table} t"
        if not self.is_shared:
            return query.format(self.of_row("t"))
        return query.format(f"sum({self.of_row('t')})") + " GROUP BY 1"

    def triggers(self) -> Iterator[str]:
        """Yield the statements that create the triggers."""
        new, old = self.of_row("NEW"), self.of_row("OLD")
        values = f"INTO {self.checksums} VALUES ({self.key_of('NEW')}, {new})"
        of_old = f"WHERE id = {self.key_of('OLD')}"
        if self.is_shared:
            added = f"INSERT {values}\n    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;"
            subtracted = f"UPDATE {self.checksums} SET checksum = checksum\n        - {old}\n    {of_old};"
            rows = f"SELECT 1 FROM {self.table} t WHERE {self.key_of('t')} = {self.key_of('OLD')}"
            deleted = f"{subtracted}\n    DELETE FROM {self.checksums} {of_old} AND NOT EXISTS ({rows});"
            changed = f"{deleted}\n    {added}"
        else:
            # A third quicker than an upsert, which would look for an entry that a new row does not have.
            added = f"INSERT OR REPLACE {values};"
            changed = (
                f"UPDATE OR REPLACE {self.checksums} SET id = {self.key_of('NEW')}, checksum = checksum\n"
                f"        + {new}\n        - {old}\n    {of_old};"
            )
            deleted = f"DELETE FROM {self.checksums} {of_old};"
        columns = ", ".join(self.columns)
        states = (", ".join(f"{row}.{column}" for column in self.columns) for row in ("NEW", "OLD"))
        unless_same = "\nWHEN ({}) IS NOT ({})".format(*states) if self.is_touched else ""
        for name, event, body in (
            ("added", "INSERT", added),
            ("changed", f"UPDATE OF {columns}", changed),
            ("deleted", "DELETE", deleted),
        ):
            condition = unless_same if name == "changed" else ""
            yield (
                f"CREATE TRIGGER {self.table}_checksum_{name} AFTER {event} ON {self.table}{condition} BEGIN\n"
                f"    {body}\nEND;"
            )

    def schema(self) -> str:
        """Return the statements that create the checksums of existing rows and the triggers."""
        create = f"CREATE TABLE {self.checksums} (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;"
        return "\n".join([create, f"INSERT INTO {self.checksums} {self.computed};", *self.triggers()])


def _covered(
    table: str, columns: str, *, key: str = "id", reals: str = "", is_shared: bool = False, is_touched: bool = False
) -> Covered:
    return Covered(table, key, tuple(columns.split()), frozenset(reals.split()), is_shared, is_touched)


COVERED = (
    _covered("namespaces", "id name created_at", is_touched=True),
    _covered("agents", "namespace_id uid metadata policy created_at access", key="namespace_id"),
    _covered("users", "id namespace_id name created_at"),
    _covered("sessions", "id namespace_id name user_id title metadata implicit started_at ended_at", is_touched=True),
    _covered(
        "messages",
        "id uid namespace_id session_id position role content user_id speaker metadata created_at edited_at indexed "
        "key_id stored_at",
    ),
    _covered("message_versions", "id namespace_id message_id content metadata edited_at replaced_at key_id"),
    _covered(
        "blocks",
        "id uid namespace_id label value description max_chars read_only version created_at updated_at",
    ),
    _covered(
        "block_history",
        "block_id version value description max_chars read_only actor at",
        key="block_id",
        is_shared=True,
    ),
    _covered(
        "memories",
        "id namespace_id text source key metadata document_at created_at updated_at pinned archived origin_class "
        "valid_to key_id",
    ),
    _covered("memory_tags", "memory_id folded namespace_id tag added_at", key="memory_id", is_shared=True),
    _covered("links", "from_id to_id type created_at", key="from_id", is_shared=True),
    _covered("facts", "id namespace_id memory_id ordinal text made_by created_at"),
    _covered("learned_with", "kind name memory_id", key="memory_id", is_shared=True),
    _covered("history", "id namespace_id memory_id action actor job_id at before after imported"),
    _covered("feedback", "id namespace_id memory_id useful query search_id actor created_at"),
    _covered("missed_memories", "id namespace_id memory_id context actor created_at"),
    _covered(
        "passages",
        "id namespace_id kind owner_id ordinal text profile source occurred_at archived dated session_id position role "
        "user_id speaker fact_id",
    ),
    _covered("vectors", "passage_id model_id vector tokens", key="passage_id", is_shared=True),
    _covered(
        "claims",
        "id namespace_id kind concept_id other_id text confidence made_by message_id job_id created_at memory_id "
        "other_memory_id",
        reals="confidence",
    ),
    _covered("topics", "id namespace_id name summary named_by created_at"),
    _covered(
        "topic_claims",
        "id namespace_id topic_id kind text message_id session_id first_position last_position job_id created_at",
    ),
    _covered("hidden_concepts", "namespace_id key_hash", key="namespace_id", is_shared=True),
    _covered("extraction_profiles", "namespace_id prefix fields updated_at", key="namespace_id", is_shared=True),
    _covered("tombstones", "kind owner_id erased_at", key="0", is_shared=True),
    _covered("renumbered_memories", "old_id new_id", key="old_id"),
    _covered(
        "api_keys",
        "id name principal_id key_hash key_prefix role namespace prefixes created_at revoked_at "
        "quota_requests_per_minute quota_memories quota_stored_bytes quota_jobs_per_day quota_extractions_per_day",
        key="0",
        is_shared=True,
    ),
    _covered("webhooks", "id namespace_id url events secret actor created_at", key="0", is_shared=True),
    _covered("audit_events", "id at action actor namespace resource_id method route status address count detail"),
)
"""Everything that cannot be made again from the rest, with vectors, which are found wrong only by their results."""

BY_TABLE = {covered.table: covered for covered in COVERED}


class State(StrEnum):
    """The kinds of differences between rows and checksums."""

    CHANGED = "changed"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not as it was written, or is missing.

    :param id: Its key; of an owner whose rows share a checksum, the owner's. 0: some row of the table.
    """

    table: str
    id: int
    state: State

    @property
    def sentence(self) -> str:
        place = f"a row of {self.table}" if BY_TABLE[self.table].key == "0" else f"{self.table} {self.id}"
        if self.state is State.MISSING:
            return f"{place} is missing although it was not deleted"
        return f"{place} is not as it was written"


def register(connection: apsw.Connection) -> None:
    """Define the function that the triggers call; every connection that writes needs it."""
    # The triggers call it with one BLOB; a function in Python around it would double its cost.
    computed: Any = zlib.crc32
    connection.create_scalar_function(FUNCTION, computed, 1, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)


def differences(connection: Connection, table: str) -> list[Difference]:
    """Return the rows of a covered table that differ from their checksums."""
    covered = BY_TABLE[table]
    changed = connection.execute(
        f"SELECT r.id FROM ({covered.computed}) r LEFT JOIN {covered.checksums} c ON c.id = r.id "
        "WHERE c.checksum IS NOT r.checksum ORDER BY r.id"
    )
    found = [Difference(table, row[0], State.CHANGED) for row in changed]
    rows = f"SELECT 1 FROM {covered.table} t WHERE {covered.key_of('t')} = c.id"
    missing = connection.execute(f"SELECT id FROM {covered.checksums} c WHERE NOT EXISTS ({rows}) ORDER BY id")
    return found + [Difference(table, row[0], State.MISSING) for row in missing]


def accept(connection: Connection) -> list[Difference]:
    """Make the checksums those of the rows as they are now; return what differed. The caller has a transaction."""
    found = [difference for covered in COVERED for difference in differences(connection, covered.table)]
    for difference in found:
        accept_row(connection, difference.table, difference.id)
    return found


def accept_row(connection: Connection, table: str, row_id: int) -> None:
    """Make the checksum of one row that of the row as it is now."""
    covered = BY_TABLE[table]
    connection.execute(f"DELETE FROM {covered.checksums} WHERE id = ?", (row_id,))
    connection.execute(f"INSERT INTO {covered.checksums} SELECT * FROM ({covered.computed}) WHERE id = ?", (row_id,))
