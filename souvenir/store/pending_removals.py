"""Removals of agents, users, sessions, messages, memories and blocks: the list of pending ones, and their deletion.

The targets are written to `removals` first and then deleted in batches, each a transaction that leaves the database
consistent; after a crash, deletion resumes from the list. An agent is hidden when it is listed: from then on its name
is unknown, or is that of a new agent. The same code deletes from a database that is being restored
(`souvenir.store.tombstones`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from souvenir.store import index_changes
from souvenir.store.cascade import Removal, RemovedRows
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.learning import extractions
from souvenir.store.learning import extractions as provenance
from souvenir.store.learning.extractions import Party
from souvenir.store.rows import first, ids_parameter, select
from souvenir.store.sql import Connection, SqlValue
from souvenir.store.sqlite.schema import has_table

AT_ONCE = 128
"""Rows deleted in one transaction: other writes wait for some tens of milliseconds."""

ENTRIES_AT_ONCE = 10_000
"""Entries of the log of index changes, which are small."""

HIDDEN = "/"
"""Prefix, before the id, of the name of a namespace that is being removed: requests cannot use names with `/`."""


class Removable(StrEnum):
    """Kinds of objects that can be removed; the kinds of tombstones."""

    NAMESPACE = "namespace"
    USER = "user"
    SESSION = "session"
    MESSAGE = "message"
    MEMORY = "memory"
    BLOCK = "block"


TABLES = {
    Removable.NAMESPACE: "namespaces",
    Removable.USER: "users",
    Removable.SESSION: "sessions",
    Removable.MESSAGE: "messages",
    Removable.MEMORY: "memories",
    Removable.BLOCK: "blocks",
}

PARTIES = {Removable.USER: Party.USER, Removable.SESSION: Party.SESSION}
"""Provenance kinds of the removable users and sessions."""


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """Numbers of the rows that a removal deletes, in the kinds that users store; derived rows are not counted."""

    agents: int
    users: int
    sessions: int
    messages: int
    memories: int
    facts: int
    tags: int
    blocks: int
    block_versions: int
    links: int


class Target(NamedTuple):
    """`id` is the id of the row in the table of its kind."""

    kind: Removable
    id: int


@dataclass(frozen=True, slots=True)
class RemovalStep:
    """Rows deleted by one transaction.

    :param update: Changes for the indexes of its namespace.
    :param gone: Namespaces whose indexes are to be discarded.
    :param texts: The searched texts of deleted passages.
    """

    removed: RemovedRows = field(default_factory=RemovedRows)
    update: IndexUpdate | None = None
    gone: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()


# --- the list of pending removals ------------------------------------------------------------------------------------


def begin(connection: Connection, targets: Iterable[Target], work: str) -> RemovalStep:
    """List the existing ones of these targets for removal; agents are hidden and their jobs deleted.

    :param work: The name of the removal, so that concurrent removals count their own rows.
    """
    wanted = expand(connection, present(connection, targets))
    connection.executemany(
        "INSERT INTO removals (kind, owner_id, work) VALUES (?, ?, ?) "
        "ON CONFLICT (kind, owner_id) DO UPDATE SET work = excluded.work",
        [(target.kind.value, target.id, work) for target in wanted],
    )
    removal = Removal(connection)
    namespaces = tuple(target.id for target in wanted if target.kind is Removable.NAMESPACE)
    for namespace_id in namespaces:
        _hide(removal, namespace_id)
    for _, namespace, party, name in _parties(connection, wanted):
        extractions.forget_learned_with(connection, namespace, party, name)
    return RemovalStep(removal.removed, gone=namespaces)


def begin_with_first_part(connection: Connection, targets: Iterable[Target], work: str, now: datetime) -> RemovalStep:
    """`begin`, and remove the first part, or all of it if it is small.

    So another removal of the same targets at the same time finds nothing that it could take over before it is gone.
    """
    begun = begin(connection, targets, work)
    if begun.gone:
        return begun
    first_part = advance(connection, work, now) or RemovalStep()
    return replace(first_part, removed=begun.removed + first_part.removed)


def forget_extractions(connection: Connection, targets: Iterable[Target]) -> None:
    """Blank what extractions stored in the namespaces of these targets: transcripts may quote the erased content."""
    rows = list(
        select(
            connection,
            str,
            "SELECT name FROM namespaces WHERE id IN (SELECT value FROM json_each(?))",
            (ids_parameter(namespaces_of(connection, targets)),),
        )
    )
    for name in rows:
        extractions.forget_transcripts(connection, name)


def expand(connection: Connection, targets: Sequence[Target]) -> list[Target]:
    """Add the sessions that belong only to the users among them, and the memories learned with any of them."""
    users = [target.id for target in targets if target.kind is Removable.USER]
    sessions = [Target(Removable.SESSION, session) for user in users for session in sessions_of(connection, user)]
    found = list(dict.fromkeys([*targets, *sessions]))
    memories = [
        Target(Removable.MEMORY, memory_id)
        for namespace_id, _, party, name in _parties(connection, found)
        for memory_id in provenance.memories_of(connection, namespace_id, party, name)
    ]
    return list(dict.fromkeys([*found, *memories]))


def _parties(connection: Connection, targets: Iterable[Target]) -> list[tuple[int, str, Party, str]]:
    """Return the users and sessions among these: id and name of the namespace, kind, and name."""
    found: list[tuple[int, str, Party, str]] = []
    for kind, ids in by_kind(targets).items():
        if kind not in PARTIES:
            continue
        rows = select(
            connection,
            tuple[int, str, str],
            f"SELECT n.id, n.name, o.name FROM {TABLES[kind]} o JOIN namespaces n ON n.id = o.namespace_id "
            "WHERE o.id IN (SELECT value FROM json_each(?))",
            (ids_parameter(ids),),
        )
        found += [(namespace_id, namespace, PARTIES[kind], name) for namespace_id, namespace, name in rows]
    return found


def present(connection: Connection, targets: Iterable[Target]) -> list[Target]:
    """Return the targets that exist; the database may have an older schema."""
    found: list[Target] = []
    for kind, ids in by_kind(targets).items():
        if not supports(connection, kind):
            continue
        rows = _ids(
            connection,
            f"SELECT id FROM {TABLES[kind]} WHERE id IN (SELECT value FROM json_each(?))",
            ids_parameter(ids),
        )
        found += [Target(kind, id_) for id_ in rows]
    return found


def _hide(removal: Removal, namespace_id: int) -> None:
    connection = removal.connection
    name = str(connection.execute("SELECT name FROM namespaces WHERE id = ?", (namespace_id,)).get)
    removal.agent(namespace_id, name)
    connection.execute("UPDATE namespaces SET name = ? WHERE id = ?", (f"{HIDDEN}{namespace_id}", namespace_id))


def sessions_of(connection: Connection, user_id: int) -> list[int]:
    """Return the sessions that belong to a user alone: they contain no message of another user.

    A session without a user belongs to one if all of its messages do.
    """
    return list(
        select(
            connection,
            int,
            "SELECT id FROM sessions s WHERE user_id = ?1 AND NOT EXISTS "
            "(SELECT 1 FROM messages m WHERE m.session_id = s.id AND m.user_id <> ?1) "
            "UNION SELECT s.id FROM sessions s WHERE s.user_id IS NULL AND s.id IN "
            "(SELECT session_id FROM messages WHERE user_id = ?1) AND NOT EXISTS "
            "(SELECT 1 FROM messages m WHERE m.session_id = s.id AND m.user_id IS DISTINCT FROM ?1)",
            (user_id,),
        )
    )


def any_pending(connection: Connection, targets: Iterable[Target]) -> bool:
    """Return whether one of these is being removed."""
    query = "SELECT EXISTS (SELECT 1 FROM removals WHERE kind = ? AND owner_id = ?)"
    return any(connection.execute(query, (target.kind.value, target.id)).get for target in targets)


def pending_works(connection: Connection) -> set[str]:
    """Return the names of unfinished removals."""
    return set(select(connection, str, "SELECT DISTINCT work FROM removals"))


def count_pending(connection: Connection, work: str) -> int:
    """Count the messages, memories and blocks that a removal still has to delete."""
    named = "SELECT owner_id FROM removals WHERE work = ?1 AND kind = "
    messages = (
        f"SELECT count(*) FROM messages WHERE namespace_id IN ({named} 'namespace') OR user_id IN ({named} 'user') "
        f"OR session_id IN ({named} 'session') OR id IN ({named} 'message')"
    )
    memories, blocks = (
        f"SELECT count(*) FROM {TABLES[kind]} WHERE namespace_id IN ({named} 'namespace') OR id IN ({named} '{kind}')"
        for kind in (Removable.MEMORY, Removable.BLOCK)
    )
    return int(connection.execute(f"SELECT ({messages}) + ({memories}) + ({blocks})", (work,)).get)


def count_selected(connection: Connection, targets: Iterable[Target]) -> SelectedRows:
    """Count what the removal of these expanded targets deletes."""
    ids = by_kind(targets)
    parameters = {kind.value: ids_parameter(ids.get(kind, [])) for kind in Removable}

    def of(kind: Removable, column: str = "id") -> str:
        return f"{column} IN (SELECT value FROM json_each(:{kind.value}))"

    in_namespace = of(Removable.NAMESPACE, "namespace_id")
    rows = {
        kind: f"FROM {TABLES[kind]} WHERE {in_namespace} OR {of(kind)}"
        for kind in Removable
        if kind is not Removable.NAMESPACE
    }
    rows[Removable.MESSAGE] += f" OR {of(Removable.USER, 'user_id')} OR {of(Removable.SESSION, 'session_id')}"
    of_memories = f"IN (SELECT id {rows[Removable.MEMORY]})"
    queries = {
        "agents": f"FROM agents WHERE {in_namespace}",
        "users": rows[Removable.USER],
        "sessions": rows[Removable.SESSION],
        "messages": rows[Removable.MESSAGE],
        "memories": rows[Removable.MEMORY],
        "facts": f"FROM facts WHERE memory_id {of_memories}",
        "tags": f"FROM memory_tags WHERE memory_id {of_memories}",
        "blocks": rows[Removable.BLOCK],
        "block_versions": f"FROM block_history WHERE block_id IN (SELECT id {rows[Removable.BLOCK]})",
        "links": f"FROM links WHERE from_id {of_memories} OR to_id {of_memories}",
    }
    counts = {
        name: int(connection.execute(f"SELECT count(*) {query}", parameters).get) for name, query in queries.items()
    }
    return SelectedRows(**counts)


def namespaces_of(connection: Connection, targets: Iterable[Target]) -> set[int]:
    """Return the namespaces of those targets that exist."""
    found: set[int] = set()
    for kind, ids in by_kind(targets).items():
        column = "id" if kind is Removable.NAMESPACE else "namespace_id"
        rows = select(
            connection,
            int,
            f"SELECT DISTINCT {column} FROM {TABLES[kind]} WHERE id IN (SELECT value FROM json_each(?))",
            (ids_parameter(ids),),
        )
        found.update(rows)
    return found


def supports(connection: Connection, kind: Removable) -> bool:
    """Return whether the database, which may have an older schema, has the kind at all."""
    return has_table(connection, TABLES[kind])


def by_kind(targets: Iterable[Target]) -> dict[Removable, list[int]]:
    found: dict[Removable, list[int]] = {}
    for kind, id_ in targets:
        found.setdefault(kind, []).append(id_)
    return found


# --- deletion in batches ---------------------------------------------------------------------------------------------


def advance(connection: Connection, work: str, now: datetime, *, at_once: int = AT_ONCE) -> RemovalStep | None:
    """Delete the next batch of a removal; return None when nothing of it is left."""
    query = "SELECT kind, owner_id FROM removals WHERE work = ? ORDER BY kind, owner_id LIMIT 1"
    target = first(connection, Target, query, (work,))
    if target is None:
        return None
    match target.kind:
        case Removable.NAMESPACE:
            return _advance_namespace(connection, target, now, at_once)
        case Removable.USER | Removable.SESSION:
            return _advance_owner(connection, target, now, at_once)
        case _:
            return _advance_rows(connection, target.kind, work, now, at_once)


def _advance_namespace(connection: Connection, target: Target, now: datetime, at_once: int) -> RemovalStep:
    """Delete the next rows of the first table that has some, and finally the namespace itself."""
    namespace_id = target.id
    removal = Removal(connection)
    parts: Mapping[str, Callable[[Sequence[int]], None]] = {
        "messages": partial(removal.messages, namespace_id=namespace_id),
        "memories": partial(removal.memories, namespace_id=namespace_id, keep_history=False),
        "history": removal.history,
        "events": removal.events,
        "blocks": partial(removal.blocks, namespace_id=namespace_id),
        "sessions": partial(removal.sessions, namespace_id=namespace_id),
        "users": removal.users,
    }
    removal.requests_of(namespace_id)
    for table, remove in parts.items():
        ids = _ids(connection, f"SELECT id FROM {table} WHERE namespace_id = ? LIMIT ?", namespace_id, at_once)
        if ids:
            remove(ids)
            return _step(removal, namespace_id, now, logged=False)
    if index_changes.delete_of(connection, namespace_id, at_once=ENTRIES_AT_ONCE):
        return RemovalStep()
    # The schema cascades to everything else.
    connection.execute("DELETE FROM namespaces WHERE id = ?", (namespace_id,))
    _finish(connection, [target])
    return RemovalStep(removal.removed, gone=(namespace_id,))


def _advance_owner(connection: Connection, target: Target, now: datetime, at_once: int) -> RemovalStep:
    """Delete the next messages of a session or a user, and with the last ones the session or user itself."""
    namespaces = namespaces_of(connection, [target])
    if not namespaces:
        _finish(connection, [target])
        return RemovalStep()
    [namespace_id] = namespaces
    column = "session_id" if target.kind is Removable.SESSION else "user_id"
    ids = _ids(connection, f"SELECT id FROM messages WHERE {column} = ? LIMIT ?", target.id, at_once)
    removal = Removal(connection)
    removal.messages(ids, namespace_id)
    if len(ids) < at_once:
        if target.kind is Removable.SESSION:
            removal.sessions([target.id], namespace_id)
        else:
            removal.users([target.id])
        _finish(connection, [target])
    return _step(removal, namespace_id, now)


def _advance_rows(connection: Connection, kind: Removable, work: str, now: datetime, at_once: int) -> RemovalStep:
    """Delete the next individually listed messages, memories or blocks of one namespace."""
    chosen = list(
        select(
            connection,
            tuple[int, int | None],
            f"SELECT owner_id, namespace_id FROM removals LEFT JOIN {TABLES[kind]} ON id = owner_id "
            "WHERE work = ? AND kind = ? LIMIT ?",
            (work, kind.value, at_once),
        )
    )
    namespace_id = next((one for _, one in chosen if one is not None), None)
    ids = [id_ for id_, one in chosen if one in (namespace_id, None)]
    _finish(connection, [Target(kind, id_) for id_ in ids])
    if namespace_id is None:
        return RemovalStep()
    removal = Removal(connection)
    match kind:
        case Removable.MESSAGE:
            removal.messages(ids, namespace_id)
        case Removable.MEMORY:
            removal.memories(ids, namespace_id)
        case _:
            removal.blocks(ids, namespace_id)
    return _step(removal, namespace_id, now)


def _step(removal: Removal, namespace_id: int, now: datetime, *, logged: bool = True) -> RemovalStep:
    """:param logged: False for a namespace that is being removed: its snapshots are gone."""
    changes = tuple(removal.changes)
    change_seq = index_changes.append(removal.connection, namespace_id, changes if logged else (), now)
    update = IndexUpdate(namespace_id, change_seq, changes, changes)
    return RemovalStep(removal.removed, update, texts=tuple(removal.texts))


def _finish(connection: Connection, targets: Iterable[Target]) -> None:
    connection.executemany(
        "DELETE FROM removals WHERE kind = ? AND owner_id = ?", [(target.kind.value, target.id) for target in targets]
    )


def _ids(connection: Connection, query: str, *parameters: SqlValue) -> list[int]:
    return list(select(connection, int, query, parameters))
