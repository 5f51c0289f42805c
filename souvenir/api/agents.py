"""Agents: made, listed, looked at. An agent is a namespace, so `X-Namespace: NAME` reaches its memories."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from souvenir.api.caller import (
    MAX_NAMESPACE_CHARS,
    Reader,
    RunningService,
    Writer,
    agent_scope,
    caller_of,
    namespace_name,
)
from souvenir.api.errors import error_responses
from souvenir.api.fields import MAX_ID, wire_time
from souvenir.api.json_route import router
from souvenir.api.metadata import PlainMetadata
from souvenir.api.once import MakeOnce
from souvenir.store.agents import Agent
from souvenir.types import Role

routes = router("agents")

AgentName = Annotated[
    str,
    AfterValidator(namespace_name),
    Field(
        min_length=1,
        max_length=MAX_NAMESPACE_CHARS,
        description="The agent's name, which is that of its namespace: printable characters without `/`.",
        examples=["my_agent"],
    ),
]

AGENT_EXAMPLE: dict[str, Any] = {
    "id": "6f1c2b1e-8d5e-4c7e-9a4f-0f3f6f3f2b7a",
    "name": "my_agent",
    "created_at": "2025-04-02T09:30:00.000000+00:00",
    "metadata": None,
}


class CreateAgentRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "my_agent"}]})

    name: AgentName
    metadata: PlainMetadata | None = None


class AgentRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [AGENT_EXAMPLE]})

    id: str = Field(description="A UUID.")
    name: str
    created_at: str = Field(description="ISO-8601 in UTC with microseconds.")
    metadata: dict[str, Any] | None

    @classmethod
    def of(cls, agent: Agent) -> AgentRecord:
        metadata = None if agent.metadata is None else dict(agent.metadata)
        return cls(id=agent.uid, name=agent.name, created_at=wire_time(agent.created_at), metadata=metadata)


class AgentPage(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agents": [AGENT_EXAMPLE], "total": 1, "offset": 0, "limit": 100}]}
    )

    agents: list[AgentRecord] = Field(description="In the order of their names.")
    total: int = Field(description="How many there are on all pages.")
    offset: int
    limit: int


@routes.post("/agents", summary="Make an agent", responses=error_responses(404))
def create_agent(
    body: CreateAgentRequest, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> AgentRecord:
    """Make an agent, or get the one that has the name."""
    return AgentRecord.of(service.agents.create(agent_scope(request, body.name), body.metadata, once=once))


@routes.get("/agents", summary="List agents", responses=error_responses())
def list_agents(
    scope: Reader,
    service: RunningService,
    request: Request,
    offset: Annotated[int, Query(ge=0, le=MAX_ID, description="Agents to leave out first.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Agents wanted.")] = 100,
) -> AgentPage:
    """List the agents that the key may see."""
    only = None if caller_of(request).role is Role.ADMIN else agent_scope(request, scope.namespace).namespace
    found, total = service.agents.page(only=only, offset=offset, limit=limit)
    return AgentPage(agents=[AgentRecord.of(one) for one in found], total=total, offset=offset, limit=limit)


@routes.get("/agents/{agent_name}", summary="Get an agent", responses=error_responses(404))
def get_agent(agent_name: AgentName, _: Reader, service: RunningService, request: Request) -> AgentRecord:
    """Get an agent by its name."""
    return AgentRecord.of(service.agents.get(agent_scope(request, agent_name)))
