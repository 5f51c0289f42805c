"""Agents: create, list and get them, their users, statistics and access levels, and delete them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Self

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import MAX_ID, UserName, optional_wire_time, wire_time
from souvenir.api.metadata import PlainMetadata
from souvenir.api.parameters import AgentAdmin, AgentName, AgentReader, AgentWriter, Limit, Offset
from souvenir.conversations.agents import AgentStats
from souvenir.core.types import AccessLevels, Role
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import (
    NOTHING,
    REMEMBERED,
    SAID,
    MakeOnce,
    Reader,
    RunningService,
    Writer,
    agent_scope,
    caller_of,
)
from souvenir.server.routing import Routes
from souvenir.store.cascade import RemovedRows
from souvenir.store.messages.agents import Agent
from souvenir.store.messages.sessions import User
from souvenir.store.selection import Chooses

routes = Routes("agents")


class CreateAgentRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "my_agent"}]})

    name: AgentName
    metadata: PlainMetadata | None = None


class AgentRecord(BaseModel):
    id: str = Field(description="A UUID.", examples=["6f1c2b1e-8d5e-4c7e-9a4f-0f3f6f3f2b7a"])
    name: str = Field(examples=["my_agent"])
    created_at: str = Field(description="ISO-8601 in UTC with microseconds.")
    metadata: dict[str, Any] | None

    @classmethod
    def of(cls, agent: Agent) -> AgentRecord:
        metadata = None if agent.metadata is None else dict(agent.metadata)
        return cls(id=agent.uid, name=agent.name, created_at=wire_time(agent.created_at), metadata=metadata)


class AgentPage(BaseModel):
    agents: list[AgentRecord] = Field(description="Ordered by name.")
    total: int = Field(description="The total number of items on all pages.")
    offset: int
    limit: int


@routes.post("/agents", summary="Create an agent", cost=CostClass.LIGHT, sdk="agents.create", errors=[404])
def create_agent(
    body: CreateAgentRequest, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> AgentRecord:
    """Create an agent, or get the existing agent with that name."""
    return AgentRecord.of(service.agents.create(agent_scope(request, body.name), body.metadata, once=once))


@routes.get(
    "/agents",
    summary="List agents",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="agents.list",
)
def list_agents(
    scope: Reader,
    service: RunningService,
    request: Request,
    name_prefix: Annotated[
        str, Query(max_length=200, description="Only agents whose name begins with this, in the same case.")
    ] = "",
    offset: Annotated[int, Query(ge=0, le=MAX_ID, description="Number of agents to skip.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of agents.")] = 100,
) -> AgentPage:
    """List the agents that the key can access."""
    only = None if caller_of(request).role is Role.ADMIN else agent_scope(request, scope.namespace).namespace
    found, total = service.agents.page(only=only, prefix=name_prefix, offset=offset, limit=limit)
    return AgentPage(agents=[AgentRecord.of(one) for one in found], total=total, offset=offset, limit=limit)


@routes.get(
    "/agents/{agent_name}",
    summary="Get an agent",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="agents.get",
    errors=[404],
)
def get_agent(scope: AgentReader, service: RunningService) -> AgentRecord:
    """Get an agent by its name."""
    return AgentRecord.of(service.agents.get(scope))


class UserRecord(BaseModel):
    """A user that an agent talks with."""

    name: str = Field(examples=["alice"])
    created_at: str = Field(description="The time of the user's first session or message.")
    messages: int = Field(description="The current number of their messages.")

    @classmethod
    def of(cls, user: User) -> Self:
        return cls(name=user.name, created_at=wire_time(user.created_at), messages=user.messages)


class UserPage(BaseModel):
    users: list[UserRecord] = Field(description="Ordered by name.")
    total: int = Field(description="The total number of items on all pages.")
    offset: int
    limit: int


class AgentStatsResponse(BaseModel):
    messages: int
    sessions: int
    users: int
    blocks: int
    memories: int = Field(description="Including archived ones.")
    first_message_at: str | None = Field(description="The earliest `created_at` of a message.")
    last_message_at: str | None = Field(description="The latest `created_at` of a message.")
    index_bytes: int = Field(description="Bytes of RAM used by the agent's indexes; 0 before the first search.")

    @classmethod
    def of(cls, stats: AgentStats) -> Self:
        return cls(
            messages=stats.counts.messages,
            sessions=stats.counts.sessions,
            users=stats.counts.users,
            blocks=stats.counts.blocks,
            memories=stats.counts.memories,
            first_message_at=optional_wire_time(stats.counts.first_message_at),
            last_message_at=optional_wire_time(stats.counts.last_message_at),
            index_bytes=stats.index_bytes,
        )


@routes.get(
    "/agents/{agent_name}/users",
    summary="List an agent's users",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="agents.users",
    errors=[404],
)
def list_users(scope: AgentReader, service: RunningService, offset: Offset = 0, limit: Limit = 100) -> UserPage:
    """List the users that an agent talks with, by name."""
    found, total = service.sessions.users(scope, offset=offset, limit=limit)
    return UserPage(users=[UserRecord.of(one) for one in found], total=total, offset=offset, limit=limit)


@routes.get(
    "/agents/{agent_name}/stats",
    summary="Get an agent's statistics",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="agents.stats",
    errors=[404],
)
def agent_stats(scope: AgentReader, service: RunningService) -> AgentStatsResponse:
    """Count an agent's messages, sessions, users, blocks and memories."""
    return AgentStatsResponse.of(service.agents.stats(scope))


_EXAMPLE: dict[str, Any] = {"quick_memory": True, "full_memory": False, "logs": False}

_QUICK = "Searches with at most 5 results."
_FULL = "All memories, and searches without that limit."
_LOGS = "Messages, sessions and users, and exports of them."


class AccessRequest(BaseModel):
    """Omitted or null fields are kept."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    quick_memory: bool | None = Field(default=None, description=_QUICK)
    full_memory: bool | None = Field(default=None, description=_FULL)
    logs: bool | None = Field(default=None, description=_LOGS)

    def changes(self) -> dict[str, bool]:
        return self.model_dump(exclude_none=True)


class AccessRecord(BaseModel):
    quick_memory: bool = Field(description=_QUICK)
    full_memory: bool = Field(description=_FULL)
    logs: bool = Field(description=_LOGS)

    @classmethod
    def of(cls, levels: AccessLevels) -> AccessRecord:
        return cls(quick_memory=levels.quick_memory, full_memory=levels.full_memory, logs=levels.logs)


@routes.get(
    "/agents/{agent_name}/access",
    summary="Get an agent's access levels",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="agents.access",
    errors=[404],
)
def get_access(scope: AgentReader, service: RunningService) -> AccessRecord:
    """Get the access levels of an agent, which limit what non-admin keys can read."""
    return AccessRecord.of(service.agents.get(scope).access)


@routes.put(
    "/agents/{agent_name}/access",
    summary="Set an agent's access levels",
    cost=CostClass.LIGHT,
    sdk="agents.set_access",
    errors=[404],
)
def set_access(body: AccessRequest, scope: AgentAdmin, service: RunningService) -> AccessRecord:
    """Set an agent's access levels; effective immediately."""
    levels = service.agents.set_access(scope, body.changes())
    service.audit.act(scope, "access.set", scope.namespace)
    return AccessRecord.of(levels)


class RemovedCounts(BaseModel):
    """The number of deleted rows by kind."""

    agents: int
    users: int
    sessions: int
    messages: int
    memories: int
    facts: int = Field(default=0, description="Facts of memories.")
    tags: int = Field(default=0, description="Tags of memories, counted per memory.")
    blocks: int
    block_versions: int = Field(description="Versions of the blocks.")
    links: int = Field(description="Links between memories.")
    history: int = Field(description="Changes of memories whose texts were removed.")
    passages: int = Field(description="Indexed passages.")
    vectors: int
    mentions: int = Field(default=0, description="Mentions of concepts in messages and memories.")
    concepts: int = Field(default=0, description="Concepts that are no longer mentioned.")
    idempotency_keys: int = Field(description="Idempotency keys whose results were deleted.")
    jobs: int = Field(description="Jobs of the agent, including finished ones.")

    @classmethod
    def of(cls, removed: RemovedRows) -> RemovedCounts:
        return cls(**asdict(removed))


class RemovedResponse(BaseModel):
    success: bool
    removed: RemovedCounts

    @classmethod
    def of(cls, removed: RemovedRows) -> RemovedResponse:
        return cls(success=True, removed=RemovedCounts.of(removed))


@routes.delete(
    "/agents/{agent_name}",
    summary="Delete an agent",
    cost=CostClass.LONG,
    sdk="agents.delete",
    errors=[404],
)
def delete_agent(scope: AgentWriter, service: RunningService) -> RemovedResponse:
    """Delete an agent with its whole namespace; its jobs are cancelled, and its name can be reused immediately."""
    removed = service.removals.remove(scope, Chooses.AGENT)
    service.audit.act(scope, "agent.delete", detail=f"{removed.messages} messages, {removed.memories} memories")
    return RemovedResponse.of(removed)


@routes.delete(
    "/agents/{agent_name}/users/{user}",
    summary="Delete a user",
    cost=CostClass.LONG,
    sdk="agents.delete_user",
    errors=[404],
)
def delete_user(user: UserName, scope: AgentWriter, service: RunningService) -> RemovedResponse:
    """Delete a user with their messages, the sessions that only they took part in, and memories learned from them."""
    removed = service.removals.remove(scope, Chooses.USER, user)
    service.audit.act(scope, "user.delete", detail=f"{removed.messages} messages, {removed.memories} memories")
    return RemovedResponse.of(removed)
