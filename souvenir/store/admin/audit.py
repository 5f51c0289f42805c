"""The audit log: actions of admins and denied requests, shown together with the changes in `history`.

A change of a memory is stored once, in `history`, and shown here as the action `memory.<verb>`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from souvenir.core.timestamps import to_us
from souvenir.store.rows import select
from souvenir.store.sql import Connection, SqlValue

PURGED_AT_ONCE = 5_000
"""Rows deleted in one transaction: other writes wait for some tens of milliseconds."""

OF_MEMORY = "memory."
"""Prefix of the actions of changes to memories, and of no others."""

_COLUMNS = "at, action, actor, namespace, resource_id, method, route, status, address, count, detail"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """An action or a denied request, without secrets or texts.

    :param resource_id: The id of the object: a key, a backup's name, a job, a memory.
    :param route: The route's template, of a denied request.
    :param address: The client address of a denied request.
    :param count: The number of equal requests in this event.
    :param imported: Whether an import brought it: actor and time are claims of a file, and nothing was done here.
    """

    at: datetime
    action: str
    actor: str
    namespace: str | None = None
    resource_id: str | None = None
    method: str | None = None
    route: str | None = None
    status: int | None = None
    address: str | None = None
    count: int = 1
    detail: str | None = None
    imported: bool = False


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An event, or a change from history, with an id of the log."""

    id: str
    event: AuditEvent


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """None does not filter. A key's actor is `key:` and its id; either form matches its acts, not imported changes.

    :param since: The earliest time. :param until: The latest time.
    """

    action: str | None = None
    key_id: str | None = None
    resource_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def record(connection: Connection, events: Iterable[AuditEvent]) -> None:
    """Write events in the caller's transaction."""
    connection.executemany(
        f"INSERT INTO audit_events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                to_us(event.at),
                event.action,
                event.actor,
                event.namespace,
                event.resource_id,
                event.method,
                event.route,
                event.status,
                event.address,
                event.count,
                event.detail,
            )
            for event in events
        ],
    )


def page(connection: Connection, chosen: AuditFilter, *, limit: int, offset: int) -> list[AuditEntry]:
    """Return a page of events and changes together, newest first."""
    conditions, parameters = _conditions(chosen)
    # Both halves are read in index order on `at` and merged by SQLite without sorting.
    rows = select(
        connection,
        tuple[str, int, AuditEvent],
        f"SELECT 'event' AS kind, id, {_COLUMNS}, 0 FROM audit_events WHERE {conditions['event']} "
        "UNION ALL "
        f"SELECT 'change', id, at, '{OF_MEMORY}' || action, actor, "
        "(SELECT name FROM namespaces n WHERE n.id = namespace_id), CAST(memory_id AS TEXT), "
        f"NULL, NULL, NULL, NULL, 1, job_id, imported FROM history WHERE {conditions['change']} "
        "ORDER BY at DESC, id DESC, kind LIMIT ? OFFSET ?",
        (*parameters["event"], *parameters["change"], limit, offset),
    )
    return [AuditEntry(f"{kind}-{row_id}", event) for kind, row_id, event in rows]


def purge(connection: Connection, before: datetime) -> int:
    """Delete the oldest events before a time, at most `PURGED_AT_ONCE`; return how many there were."""
    connection.execute(
        "DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events WHERE at < ? ORDER BY at LIMIT ?)",
        (to_us(before), PURGED_AT_ONCE),
    )
    return connection.changes()


def _conditions(chosen: AuditFilter) -> tuple[dict[str, str], dict[str, list[SqlValue]]]:
    """Return the conditions on both tables, and their parameters."""
    parts: dict[str, list[str]] = {"event": ["TRUE"], "change": ["TRUE"]}
    values: dict[str, list[SqlValue]] = {"event": [], "change": []}
    if chosen.action is not None:
        of_memory = chosen.action.startswith(OF_MEMORY)
        holder, other = ("change", "event") if of_memory else ("event", "change")
        parts[holder].append("action = ?")
        values[holder].append(chosen.action.removeprefix(OF_MEMORY) if of_memory else chosen.action)
        parts[other].append("FALSE")
    if chosen.key_id is not None:
        for kind, found in values.items():
            parts[kind].append("actor IN (?, 'key:' || ?)")
            found += [chosen.key_id, chosen.key_id]
        parts["change"].append("imported = 0")
    if chosen.resource_id is not None:
        parts["event"].append("resource_id = ?")
        parts["change"].append("memory_id = ?")
        values["event"].append(chosen.resource_id)
        values["change"].append(_memory_id(chosen.resource_id))
    for bound, moment in ((">=", chosen.since), ("<=", chosen.until)):
        if moment is not None:
            for kind, found in values.items():
                parts[kind].append(f"at {bound} ?")
                found.append(to_us(moment))
    return {kind: " AND ".join(part) for kind, part in parts.items()}, values


def _memory_id(resource_id: str) -> int:
    """Return the memory id, or one that no memory has."""
    number = int(resource_id) if resource_id.isascii() and resource_id.isdigit() and len(resource_id) < 19 else 0
    return number if str(number) == resource_id else 0
