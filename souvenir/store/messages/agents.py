"""Rows of agents: namespaces with an id, metadata, a privacy policy and access levels."""

from __future__ import annotations

import json
import sys
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple

from souvenir.core.errors import AgentNotFound
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import EARLIEST_US, LATEST_US, to_us
from souvenir.core.types import UNLIMITED, AccessLevels, JsonObject, Scope
from souvenir.store.graph import mention_queue
from souvenir.store.rows import first, only, readable, select
from souvenir.store.sql import Connection

_COLUMNS = "a.namespace_id, n.name, a.uid, a.metadata, a.policy, a.access, a.created_at"
_FROM = f"SELECT {_COLUMNS} FROM agents a JOIN namespaces n ON n.id = a.namespace_id"


@dataclass(frozen=True, slots=True)
class Agent:
    """`policy` holds the settings in which the agent's privacy differs from the rules."""

    namespace_id: int
    name: str
    uid: str
    metadata: JsonObject | None
    policy: JsonObject
    access: AccessLevels
    created_at: datetime


class _AgentRow(NamedTuple):
    namespace_id: int
    name: str
    uid: str
    metadata: JsonObject | None
    policy: JsonObject
    access: JsonObject
    created_at: datetime

    @property
    def agent(self) -> Agent:
        return Agent(**{**self._asdict(), "access": AccessLevels(**self.access)})


@dataclass(frozen=True, slots=True)
class AgentCounts:
    """`memories` includes archived ones."""

    messages: int
    sessions: int
    users: int
    blocks: int
    memories: int
    first_message_at: datetime | None
    last_message_at: datetime | None


def find(connection: Connection, name: str) -> Agent | None:
    row = first(connection, _AgentRow, f"{_FROM} WHERE n.name = ?", (name,))
    return None if row is None else row.agent


def require_agent(connection: Connection, scope: Scope) -> Agent:
    """Return the scope's agent.

    :raises AgentNotFound: If the namespace is not an agent.
    """
    found = find(connection, scope.namespace)
    if found is None:
        raise AgentNotFound(scope.namespace)
    return found


def page(connection: Connection, *, only: str | None, prefix: str, offset: int, limit: int) -> tuple[list[Agent], int]:
    """Return a page of agents by name, and the total.

    :param only: The only visible name, if visibility is limited.
    :param prefix: The beginning of the names, in the same case; empty for all.
    """
    chosen, parameters = "WHERE n.name >= ? AND n.name < ?", [prefix, prefix + chr(sys.maxunicode)]
    if only is not None:
        chosen, parameters = f"{chosen} AND n.name = ?", [*parameters, only]
    rows = readable(
        connection,
        _AgentRow,
        f"{_FROM} {chosen} ORDER BY n.name LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
        table="agents",
    )
    found = [row.agent for row in rows]
    total = connection.execute(
        f"SELECT count(*) FROM agents a JOIN namespaces n ON n.id = a.namespace_id {chosen}", parameters
    ).get
    return found, int(total)


def ensure(connection: Connection, namespace_id: int, now: datetime, metadata: JsonObject | None) -> None:
    """Make the namespace an agent if it is none; given metadata is stored unless the agent already has some.

    The existing memories of a new agent are queued for its graph.
    """
    stored = None if metadata is None else to_json(dict(metadata))
    known = connection.execute("SELECT 1 FROM agents WHERE namespace_id = ?", (namespace_id,)).fetchone()
    connection.execute(
        "INSERT INTO agents (namespace_id, uid, metadata, policy, created_at) VALUES (?, ?, ?, '{}', ?) "
        "ON CONFLICT (namespace_id) DO UPDATE SET metadata = coalesce(agents.metadata, excluded.metadata)",
        (namespace_id, str(uuid.uuid4()), stored, to_us(now)),
    )
    if known is None:
        mention_queue.put_all(connection, namespace_id)


def recreate(connection: Connection, agent: Agent, now: datetime) -> None:
    """Recreate a deleted agent with the same settings and no content; its name must be free."""
    row = connection.execute(
        "INSERT INTO namespaces (name, created_at, changed_at) VALUES (?, ?, ?) RETURNING id",
        (agent.name, to_us(agent.created_at), to_us(now)),
    ).get
    namespace_id = int(row)
    ensure(connection, namespace_id, agent.created_at, agent.metadata)
    connection.execute("UPDATE agents SET uid = ? WHERE namespace_id = ?", (agent.uid, namespace_id))
    set_policy(connection, namespace_id, agent.policy)
    set_access(connection, namespace_id, agent.access)


def namespace_ids(connection: Connection) -> list[int]:
    return list(select(connection, int, "SELECT namespace_id FROM agents ORDER BY namespace_id"))


def counts(connection: Connection, namespace_id: int) -> AgentCounts:
    tables = ("messages", "sessions", "users", "blocks", "memories")
    counted = ", ".join(f"(SELECT count(*) FROM {table} WHERE namespace_id = ?1)" for table in tables)
    # One subquery for each end, so that each is a single lookup in the index; damaged times are no end.
    ends = ", ".join(
        f"(SELECT {end}(created_at) FROM messages WHERE namespace_id = ?1 "
        f"AND created_at BETWEEN {EARLIEST_US} AND {LATEST_US})"
        for end in ("min", "max")
    )
    return only(connection, AgentCounts, f"SELECT {counted}, {ends}", (namespace_id,))


def first_message_at(connection: Connection, namespace_id: int) -> datetime | None:
    return first(
        connection,
        datetime,
        "SELECT created_at FROM messages WHERE namespace_id = ? AND created_at BETWEEN ? AND ? ORDER BY created_at "
        "LIMIT 1",
        (namespace_id, EARLIEST_US, LATEST_US),
    )


def last_message_at(connection: Connection, namespace_id: int, until: datetime) -> datetime | None:
    return first(
        connection,
        datetime,
        "SELECT created_at FROM messages WHERE namespace_id = ? AND created_at BETWEEN ? AND ? "
        "ORDER BY created_at DESC LIMIT 1",
        (namespace_id, EARLIEST_US, to_us(until)),
    )


def set_policy(connection: Connection, namespace_id: int, policy: JsonObject) -> None:
    connection.execute("UPDATE agents SET policy = ? WHERE namespace_id = ?", (to_json(dict(policy)), namespace_id))


def access(connection: Connection, name: str) -> AccessLevels:
    """Return the access levels of the agent of this name; a namespace that is not an agent is unlimited."""
    query = "SELECT a.access FROM agents a JOIN namespaces n ON n.id = a.namespace_id WHERE n.name = ?"
    return _levels_of(connection.execute(query, (name,)).get)


def set_access(connection: Connection, namespace_id: int, levels: AccessLevels) -> None:
    """Store the levels that differ from the defaults."""
    usual = asdict(UNLIMITED)
    changes = {name: given for name, given in asdict(levels).items() if given != usual[name]}
    connection.execute("UPDATE agents SET access = ? WHERE namespace_id = ?", (to_json(changes), namespace_id))


def _levels_of(stored: str | None) -> AccessLevels:
    return UNLIMITED if stored is None else AccessLevels(**json.loads(stored))
