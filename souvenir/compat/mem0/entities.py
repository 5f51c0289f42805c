"""Routes of Mem0's entities: the users, apps and runs that memories name, and the agents, which are namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from typing import Annotated

from fastapi import Path, Request
from pydantic import BaseModel

from souvenir.api.fields import UserName, wire_time
from souvenir.compat.mem0.agents import Part, every_agent
from souvenir.compat.mem0.deleting import delete_part, end_extractions_of
from souvenir.compat.mem0.filters import named_exactly
from souvenir.compat.mem0.models import Mem0Done
from souvenir.compat.mem0.routes import Mem0Routes
from souvenir.compat.mem0.stored import USERS
from souvenir.core.errors import InvalidFilter, NotFound
from souvenir.core.labels import APP_ID, RUN_ID, USER_ID
from souvenir.core.timestamps import from_us
from souvenir.core.types import Role, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import (
    OF_MEMORY,
    REMEMBERED,
    Reader,
    RunningService,
    Writer,
    caller_of,
    namespace_name,
)
from souvenir.server.service import Service
from souvenir.store.memories.conditions import ALWAYS, Held, memories_held, sources_held, texts_held
from souvenir.store.selection import Chooses

routes = Mem0Routes("mem0")

DELETED = Mem0Done(message="Entity deleted successfully!")


class EntityType(StrEnum):
    USER = "user"
    AGENT = "agent"
    APP = "app"
    RUN = "run"


class Mem0Entity(BaseModel):
    id: Annotated[str, OF_MEMORY]
    name: Annotated[str, OF_MEMORY]
    type: EntityType
    total_memories: int
    created_at: str
    updated_at: str


class Mem0Entities(BaseModel):
    count: int
    results: list[Mem0Entity]


@routes.get("/v1/entities/", cost=CostClass.SEARCH, access=REMEMBERED)
def entities(scope: Reader, service: RunningService, request: Request) -> Mem0Entities:
    """List the agents that the key is for, and the users, apps and runs of their memories."""
    found: dict[tuple[EntityType, str], Held] = {}
    for agent in every_agent(request, scope, Role.READ_ONLY):
        for kind, held in named_entities(service.engine, agent):
            found[kind, held.value] = _together(found.get((kind, held.value)), held)
    results = [_shown(kind, held) for (kind, _), held in sorted(found.items())]
    return Mem0Entities(count=len(results), results=results)


@routes.delete("/v2/entities/{kind}/{name}/", cost=CostClass.LONG)
def delete_entity(
    kind: EntityType,
    name: Annotated[UserName, Path()],
    scope: Writer,
    service: RunningService,
    request: Request,
) -> Mem0Done:
    """Delete the memories of an entity, except pinned ones; of a user also the messages. Without any it is done too.

    The name is taken as it is: `*` is the name of an entity, not any value.
    """
    if kind is EntityType.AGENT:
        delete_part(service, Part(_agent(request, name), ALWAYS))
        return DELETED
    for agent in every_agent(request, scope, Role.READ_WRITE):
        delete_part(service, Part(agent, named_exactly(f"{kind}_id", [name])))
        if kind is EntityType.USER:
            _remove_user(service, agent, name)
    return DELETED


def _agent(request: Request, name: str) -> Scope:
    """:raises InvalidFilter: If it cannot be the name of an agent."""
    try:
        return caller_of(request).scope(Role.READ_WRITE, namespace_name(name))
    except ValueError as error:
        raise InvalidFilter(f"The agent that the path names cannot be one: {error}") from error


def _remove_user(service: Service, scope: Scope, name: str) -> None:
    """Remove a user's messages, and what was learned from them or still is; a key of some sources has none of these."""
    if scope.sources is None:
        end_extractions_of(service, scope, name)
        with suppress(NotFound):
            service.removals.remove(scope, Chooses.USER, name)


def named_entities(engine: MemoryEngine, scope: Scope) -> Iterator[tuple[EntityType, Held]]:
    """Yield the agent, and the users, apps and runs that its memories name; some users twice."""
    with engine.namespace(scope) as (connection, namespace):
        if namespace is None:
            return
        named = [(EntityType.AGENT, memories_held(connection, namespace))]
        for kind, name in ((EntityType.USER, USER_ID), (EntityType.APP, APP_ID), (EntityType.RUN, RUN_ID)):
            named.append((kind, texts_held(connection, namespace, name)))
        extracted = sources_held(connection, namespace, USERS)
    yield from chain.from_iterable(((kind, one) for one in held) for kind, held in named)
    for one in extracted:
        yield EntityType.USER, replace(one, value=one.value.removeprefix(USERS))


def _together(one: Held | None, other: Held) -> Held:
    if one is None:
        return other
    return Held(one.value, one.count + other.count, min(one.since, other.since), max(one.until, other.until))


def _shown(kind: EntityType, held: Held) -> Mem0Entity:
    return Mem0Entity(
        id=held.value,
        name=held.value,
        type=kind,
        total_memories=held.count,
        created_at=wire_time(from_us(held.since)),
        updated_at=wire_time(from_us(held.until)),
    )
