"""Which memories a request is about: the agents that its filter names, or the one agent that an id is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from souvenir.api.fields import MAX_ID
from souvenir.compat.mem0.filters import FilterReader
from souvenir.compat.mem0.stored import EXPIRATION
from souvenir.core.errors import InvalidFilter, MemoryNotFound
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Role, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.server.request_guards import caller_of, service_of
from souvenir.store.memories.conditions import (
    NEVER,
    Column,
    Compares,
    Condition,
    Every,
    Metadata,
    Not,
    Test,
    first_namespaces,
    matching_ids,
    namespace_of,
)

MAX_AGENTS = 100
"""Maximum number of agents that one request is about."""

UNARCHIVED = Test(Column.ARCHIVED, Compares.IN, (0,))
_SHOWN_ID_CHARS = 32


@dataclass(frozen=True, slots=True)
class Part:
    """The memories of one agent that a request is about."""

    scope: Scope
    condition: Condition

    def ids(self, engine: MemoryEngine) -> list[int]:
        with engine.namespace(self.scope) as (connection, namespace):
            return [] if namespace is None else matching_ids(connection, namespace, self.condition)


def unexpired() -> Condition:
    """A memory expires when its expiration date, in UTC, is over."""
    return Not(Test(Metadata((EXPIRATION,)), Compares.LT, (utc_now().date().isoformat(),)))


def parts_of(
    request: Request,
    scope: Scope,
    filters: dict[str, Any] | None,
    needed: Role,
    *more: Condition,
    must_test: bool = False,
) -> list[Part]:
    """Return what a filter is about: the caller's own agent, and those that it names.

    :param more: Conditions in addition to the filter. :param must_test: Whether a filter that tests nothing is refused.
    :raises InvalidFilter: If it is no filter, or about too many agents.
    :raises Forbidden: If it names an agent that the caller's key is not for.
    """
    reader = FilterReader(scope.namespace)
    reader.read(filters or {})
    if must_test and not reader.tests:
        raise InvalidFilter("Deleting all memories takes a filter, such as user_id; '*' stands for any value")
    scopes = {scope.namespace: scope}
    if reader.agents.every:
        scopes |= {one.namespace: one for one in every_agent(request, scope, needed)}
    caller = caller_of(request)
    scopes |= {name: caller.scope(needed, name) for name in sorted(reader.agents.names)}
    if len(scopes) > MAX_AGENTS:
        raise InvalidFilter(f"A filter names at most {MAX_AGENTS} agents; split the request")
    read = [(one, FilterReader(one.namespace).read(filters or {})) for one in scopes.values()]
    return [Part(one, Every((condition, *more))) for one, condition in read if condition != NEVER]


def every_agent(request: Request, scope: Scope, needed: Role) -> list[Scope]:
    """Return the scopes of all agents that the caller's key is for.

    :raises InvalidFilter: If there are too many.
    """
    caller = caller_of(request)
    if caller.role is not Role.ADMIN:
        return [scope]
    with service_of(request).engine.namespace(scope) as (connection, _):
        names = first_namespaces(connection, MAX_AGENTS + 1)
    if len(names) > MAX_AGENTS:
        raise InvalidFilter(f"There are more than {MAX_AGENTS} agents, so name those that you mean by agent_id")
    return [caller.scope(needed, name) for name in names]


def located(request: Request, scope: Scope, memory_id: str, needed: Role) -> tuple[Scope, int]:
    """Return the scope and number of a memory by its id alone; an admin's key reaches every agent.

    :raises MemoryNotFound: If there is no such id. The engine raises it for a memory that the scope does not see.
    """
    if not (memory_id.isascii() and memory_id.isdigit()) or len(memory_id) > len(str(MAX_ID)):
        raise MemoryNotFound(memory_id[:_SHOWN_ID_CHARS])
    number = int(memory_id)
    caller = caller_of(request)
    if caller.role is not Role.ADMIN:
        return scope, number
    with service_of(request).engine.namespace(scope) as (connection, _):
        name = namespace_of(connection, number)
    if name is None:
        raise MemoryNotFound(number)
    return caller.scope(needed, name), number


def of_each_agent(found: Sequence[tuple[Scope, int]]) -> dict[Scope, list[int]]:
    """Return the ids of memories by their agent, in order and once each."""
    of_each: dict[Scope, list[int]] = {}
    for scope, memory_id in dict.fromkeys(found):
        of_each.setdefault(scope, []).append(memory_id)
    return of_each


def project_scope(request: Request, project: str, needed: Role) -> Scope:
    """Return the scope of the namespace that a path names as a project.

    :raises Forbidden: If the caller's key is for another one, or lacks the role.
    """
    own = caller_of(request).scope(needed, project)
    request.state.namespace = own.namespace
    return own
