"""Repair of damaged rows from what the database and its backups hold twice.

A row is restored from a second copy of its content: a memory from its history, a message from its passage, passages and
facts from their owners, and any row from a backup. The checksum of the row proves which copy is right. An unreadable
row without such a proof is restored from the best copy too, and stays reported, since the checksum still differs. What
has no second copy stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import numpy as np

from souvenir.core.errors import SouvenirError
from souvenir.core.settings import Settings
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us, utc_now
from souvenir.core.types import PassageKind, Profile, RecordKind
from souvenir.store import check, index_changes
from souvenir.store.check import RowId
from souvenir.store.graph import mention_queue
from souvenir.store.memories.memories import MEMORY_STATE, MemoryState
from souvenir.store.rows import UNREADABLE, first
from souvenir.store.sqlite import checksums
from souvenir.store.sqlite.backups import Backups
from souvenir.store.sqlite.checksums import BY_TABLE, COVERED, Covered, State
from souvenir.store.sqlite.connections import open_reader, open_writer
from souvenir.store.sqlite.restore import lock_store, migrate_and_record_loss

Columns = Mapping[str, "apsw.SQLiteValue"]


def repair(connection: apsw.Connection, backups: Backups) -> list[str]:
    """Repair what can be repaired without loss, in the caller's transaction; return one sentence for each repair.

    Vectors that are wrong are removed: the caller makes those that are missing.
    """
    done: list[str] = []
    index_changes.distrust(connection)
    unreadable = set(check.unreadable(connection))
    damaged = [
        (RowId(one.table, one.id), one.state)
        for covered in COVERED
        for one in checksums.differences(connection, covered.table)
    ]
    known = {row for row, _ in damaged}
    damaged += [(row, State.CHANGED) for row in sorted(unreadable - known)]
    # Memories and messages first, since the others are restored from them; vectors last.
    for row, state in sorted(damaged, key=lambda one: _ORDER.get(one[0].table, len(_ORDER))):
        sentence = _repair_row(connection, row, state, backups, is_readable=row not in unreadable)
        if sentence is not None:
            done.append(sentence)
    return done + _recount(connection)


_ORDER = {table: place for place, table in enumerate(("memories", "messages", "facts", "passages", "history"))}


def rebuild_indexes(settings: Settings) -> list[str]:
    """Rebuild SQLite's indexes if they do not fit their tables, after a backup, while no service uses the folder.

    :return: One sentence for each thing done.
    :raises StoreUnusable: If there is no database, or it must not be opened.
    """
    path = settings.database_path
    with lock_store(settings), closing(open_writer(path)) as connection:
        connection.pragma("ignore_check_constraints", True)
        backups = Backups(settings.backup_dir, keep=settings.max_backups)
        try:
            migrate_and_record_loss(connection, settings, backups.newest)
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            if not any("index" in one for one in found):
                return []
            name = backups.create(connection, reason="pre_repair", now=utc_now()).name
            connection.execute("REINDEX")
        except apsw.Error as error:
            return [f"SQLite's indexes could not be rebuilt ({error})"]
    return [f"SQLite's indexes were rebuilt; the state before is in the backup {name}"]


def _repair_row(
    connection: apsw.Connection, row: RowId, state: State, backups: Backups, *, is_readable: bool
) -> str | None:
    """Return a sentence if the row was repaired."""
    covered = BY_TABLE[row.table]
    if row.table == "vectors":
        connection.execute("DELETE FROM vectors WHERE passage_id = ?", (row.id,))
        checksums.accept_row(connection, "vectors", row.id)
        return f"vectors {row.id} will be made again from its passage"
    copies = [] if state is State.MISSING or covered.is_shared else list(_copies(connection, row))
    for columns in copies:
        if _put(connection, covered, row.id, columns, proven=True):
            _after(connection, row)
            return f"{row.table} {row.id} was restored from a second copy, which its checksum proves"
    name = _put_from_backup(connection, covered, row.id, backups)
    if name is not None:
        _after(connection, row)
        return f"{row.table} {row.id} was restored from the backup {name}, which its checksum proves"
    if not is_readable and copies and _put(connection, covered, row.id, copies[0], proven=False):
        _after(connection, row)
        return f"{row.table} {row.id} was restored from a second copy; its checksum does not prove every column"
    return None


def _after(connection: apsw.Connection, row: RowId) -> None:
    """Queue a message or memory for the graph, which left it out while it could not be read."""
    queries = {
        "messages": (RecordKind.MESSAGE, "SELECT namespace_id FROM messages WHERE id = ?"),
        "memories": (RecordKind.MEMORY, "SELECT namespace_id FROM memories WHERE id = ? AND archived = 0"),
    }
    if row.table in queries:
        kind, query = queries[row.table]
        for (namespace_id,) in list(connection.execute(query, (row.id,))):
            mention_queue.put(connection, int(namespace_id), kind, [row.id])


def _put(connection: apsw.Connection, covered: Covered, row_id: int, columns: Columns, *, proven: bool) -> bool:
    """Write columns of a row; undo that if its checksum has to prove them and does not."""
    assigned = ", ".join(f"{column} = ?" for column in columns)
    statement = f"UPDATE {covered.table} SET {assigned} WHERE {covered.key} = ?"
    return _try(
        connection,
        covered,
        row_id,
        lambda: connection.execute(statement, (*columns.values(), row_id)),
        proven=proven,
    )


def _try(
    connection: apsw.Connection, covered: Covered, row_id: int, write: Callable[[], object], *, proven: bool
) -> bool:
    of_row = f"SELECT checksum FROM {covered.checksums} WHERE id = ?"
    wanted = connection.execute(of_row, (row_id,)).get
    connection.execute("SAVEPOINT repair")
    try:
        write()
        computed = connection.execute(f"SELECT checksum FROM ({covered.computed}) WHERE id = ?", (row_id,)).get
        is_right = computed is not None and computed == wanted
        if is_right:
            checksums.accept_row(connection, covered.table, row_id)
    except apsw.Error:
        # The copy breaks a rule of the schema, so it is not the row.
        connection.execute("ROLLBACK TO repair")
        connection.execute("RELEASE repair")
        return False
    if proven and not is_right:
        connection.execute("ROLLBACK TO repair")
    connection.execute("RELEASE repair")
    return is_right or not proven


def _put_from_backup(connection: apsw.Connection, covered: Covered, row_id: int, backups: Backups) -> str | None:
    """Return the name of the newest backup that holds the row as its checksum says, after restoring it."""
    for backup in backups.all():
        try:
            path = backups.verify(backup.name)
            rows = _rows_of(path, covered, row_id)
        except (SouvenirError, apsw.Error):
            continue
        write = partial(_replace, connection, covered, row_id, rows)
        if rows and _try(connection, covered, row_id, write, proven=True):
            return backup.name
    return None


def _rows_of(path: Path, covered: Covered, row_id: int) -> list[tuple[apsw.SQLiteValue, ...]]:
    # Texts are read as bytes, and written as texts: in the backup, another column may be damaged too.
    columns = ", ".join(
        f"iif(typeof({column}) = 'text', CAST({column} AS BLOB), {column}), typeof({column})"
        for column in covered.columns
    )
    with closing(open_reader(path)) as backup:
        return list(backup.execute(f"SELECT {columns} FROM {covered.table} WHERE {covered.key} = ?", (row_id,)))


def _replace(
    connection: apsw.Connection, covered: Covered, row_id: int, rows: list[tuple[apsw.SQLiteValue, ...]]
) -> None:
    """Write rows of a backup over those of a key; columns that have no checksum stay as they are."""
    places = ["CAST(? AS TEXT)" if kind == "text" else "?" for kind in rows[0][1::2]]
    exists = connection.execute(f"SELECT EXISTS (SELECT 1 FROM {covered.table} WHERE {covered.key} = ?)", (row_id,)).get
    if exists and not covered.is_shared:
        assigned = ", ".join(f"{column} = {place}" for column, place in zip(covered.columns, places, strict=True))
        statement = f"UPDATE {covered.table} SET {assigned} WHERE {covered.key} = ?"
        connection.execute(statement, (*rows[0][::2], row_id))
        return
    if covered.key == "0":
        raise apsw.ConstraintError("a whole table is not replaced")
    connection.execute(f"DELETE FROM {covered.table} WHERE {covered.key} = ?", (row_id,))
    names = ", ".join(covered.columns)
    for row in rows:
        places = ["CAST(? AS TEXT)" if kind == "text" else "?" for kind in row[1::2]]
        connection.execute(f"INSERT INTO {covered.table} ({names}) VALUES ({', '.join(places)})", row[::2])


# --- second copies ---------------------------------------------------------------------------------------------------


def _copies(connection: apsw.Connection, row: RowId) -> Iterator[Columns]:
    """Yield what columns of a row should be, by what is stored elsewhere, best first."""
    of_table = {
        "memories": _of_memory,
        "messages": _of_message,
        "facts": _of_fact,
        "passages": _of_passage,
        "history": _of_history,
    }.get(row.table)
    if of_table is not None:
        try:
            yield from of_table(connection, row.id)
        except UNREADABLE:
            # The second copy is damaged too.
            return


def _last_state(connection: apsw.Connection, memory_id: int) -> tuple[int, MemoryState] | None:
    """Return the state of a memory in its history, with the id of its namespace."""
    found = first(
        connection,
        tuple[int, str],
        "SELECT namespace_id, after FROM history WHERE memory_id = ? AND after IS NOT NULL ORDER BY id DESC LIMIT 1",
        (memory_id,),
    )
    return None if found is None else (found[0], MEMORY_STATE.load(json.loads(found[1])))


def _of_memory(connection: apsw.Connection, memory_id: int) -> Iterator[Columns]:
    found = _last_state(connection, memory_id)
    if found is None:
        return
    namespace_id, state = found
    columns: dict[str, apsw.SQLiteValue] = {
        "text": state.text,
        "source": state.source,
        "key": state.key,
        "metadata": to_json(dict(state.metadata)),
        "document_at": None if state.document_at is None else to_us(state.document_at),
        "pinned": state.pinned,
        "archived": state.archived,
        "origin_class": state.origin_class.value,
        "valid_to": None if state.valid_to is None else to_us(state.valid_to),
    }
    # Histories of earlier releases have no times.
    for name, time in (("created_at", state.created_at), ("updated_at", state.updated_at)):
        if time is not None:
            columns[name] = to_us(time)
    yield columns
    yield {**columns, "namespace_id": namespace_id}


def _of_message(connection: apsw.Connection, message_id: int) -> Iterator[Columns]:
    names = ("content", "role", "speaker", "user_id", "session_id", "position", "created_at", "namespace_id")
    for row in connection.execute(
        "SELECT text, role, speaker, user_id, session_id, position, occurred_at, namespace_id FROM passages "
        "WHERE kind = 'message' AND owner_id = ?",
        (message_id,),
    ):
        yield dict(zip(names, row, strict=True))


def _of_fact(connection: apsw.Connection, fact_id: int) -> Iterator[Columns]:
    owner = connection.execute("SELECT memory_id FROM facts WHERE id = ?", (fact_id,)).get
    found = _last_state(connection, int(owner))
    for ordinal, fact in enumerate(() if found is None else found[1].facts):
        if fact.id == fact_id:
            columns = {"text": fact.text, "made_by": fact.made_by.value, "created_at": to_us(fact.created_at)}
            yield columns
            yield {**columns, "ordinal": ordinal}


def _of_passage(connection: apsw.Connection, passage_id: int) -> Iterator[Columns]:
    kind, owner_id, fact_id, damaged = next(
        connection.execute(
            "SELECT kind, owner_id, fact_id, CAST(text AS BLOB) FROM passages WHERE id = ?", (passage_id,)
        )
    )
    queries = {
        PassageKind.MEMORY: (
            "SELECT m.namespace_id, coalesce(f.text, m.text), m.source, coalesce(m.document_at, m.created_at), "
            "m.archived, m.document_at IS NOT NULL FROM memories m LEFT JOIN facts f ON f.id = ?2 WHERE m.id = ?1",
            ("namespace_id", "text", "source", "occurred_at", "archived", "dated"),
        ),
        PassageKind.MESSAGE: (
            "SELECT namespace_id, content, created_at, session_id, position, role, user_id, speaker FROM messages "
            "WHERE id = ?1 AND ?2 IS NULL",
            ("namespace_id", "text", "occurred_at", "session_id", "position", "role", "user_id", "speaker"),
        ),
    }
    query, names = queries[PassageKind(kind)]
    for row in connection.execute(query, (owner_id, fact_id)):
        columns = dict(zip(names, row, strict=True))
        columns["text"] = most_similar_part(str(columns["text"]), bytes(damaged))
        yield columns
        for profile in Profile:
            yield {**columns, "profile": profile.value}


def most_similar_part(text: str, damaged: bytes) -> str:
    """Return the part of a text that has as many bytes as a damaged copy of a part, and most of them in common."""
    whole = np.frombuffer(text.encode(), dtype=np.uint8)
    part = np.frombuffer(damaged, dtype=np.uint8)
    if not len(part) or len(part) >= len(whole):
        return text
    windows = np.lib.stride_tricks.sliding_window_view(whole, len(part))
    best = max(range(len(windows)), key=lambda at: int(np.count_nonzero(windows[at] == part)))
    return bytes(windows[best]).decode(errors="replace")


def _of_history(connection: apsw.Connection, row_id: int) -> Iterator[Columns]:
    """A state is in two rows: after one change, and before the next."""
    of_memory = "SELECT memory_id FROM history WHERE id = ?1"
    previous = connection.execute(
        f"SELECT after FROM history WHERE memory_id = ({of_memory}) AND id < ?1 ORDER BY id DESC LIMIT 1", (row_id,)
    ).get
    following = connection.execute(
        f"SELECT before FROM history WHERE memory_id = ({of_memory}) AND id > ?1 ORDER BY id LIMIT 1", (row_id,)
    ).get
    copies = {name: value for name, value in (("before", previous), ("after", following)) if value is not None}
    yield from ({name: value} for name, value in copies.items())
    if len(copies) > 1:
        yield copies


# --- what is counted -------------------------------------------------------------------------------------------------


def _recount(connection: apsw.Connection) -> list[str]:
    """Compute counters and derived rows again if they are wrong."""
    done = []
    for sentences, statements, name in _DERIVED:
        if any(connection.execute(f"SELECT EXISTS ({check.SQLITE_RULES[sentence]})").get for sentence in sentences):
            for statement in statements:
                connection.execute(statement)
            done.append(f"{name} computed again")
    return done


_DERIVED = (
    (
        ("session {} counts below its greatest position",),
        (
            "UPDATE sessions SET next_position = max(next_position, "
            "(SELECT coalesce(max(position), -1) + 1 FROM messages m WHERE m.session_id = sessions.id))",
        ),
        "the next positions of sessions were",
    ),
    (
        ("{} counts below its greatest id",),
        tuple(
            f"UPDATE sqlite_sequence SET seq = max(seq, (SELECT coalesce(max(id), 0) FROM {table})) "
            f"WHERE name = '{table}'"
            for table in check.COUNTED
        ),
        "the id counters were",
    ),
    (
        (
            "concept {} is not mentioned as often as it counts, or nowhere",
            "concept {} has other forms than its mentions",
            "concept {} has other neighbours than its mentions",
            "the graph of namespace {} counts other owners than there are",
        ),
        (
            "UPDATE concepts SET owners = (SELECT count(*) FROM mentions m WHERE m.concept_id = concepts.id)",
            "DELETE FROM concept_forms",
            f"INSERT INTO concept_forms {check.FORMS_OF_MENTIONS}",
            "DELETE FROM neighbours",
            f"INSERT INTO neighbours {check.NEIGHBOURS_OF_MENTIONS}",
            "UPDATE graphs SET owners = (SELECT count(*) FROM (SELECT DISTINCT m.kind, m.owner_id FROM mentions m "
            "JOIN concepts c ON c.id = m.concept_id WHERE c.namespace_id = graphs.namespace_id))",
        ),
        "the counters of the graphs were",
    ),
)
