"""The routes of Mem0's open-source server, below `/mem0`: the same memories as those of the platform's routes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import Field

from souvenir.api.fields import SessionId, UserName
from souvenir.compat.mem0 import changes
from souvenir.compat.mem0 import routes as platform
from souvenir.compat.mem0.agents import Part, every_agent
from souvenir.compat.mem0.deleting import delete_part
from souvenir.compat.mem0.models import (
    MAX_TOP_K,
    AgentId,
    Entities,
    ListRequest,
    Mem0Done,
    Mem0Results,
    QueryText,
    SearchMem0,
    UpdateMem0,
)
from souvenir.compat.mem0.routes import Mem0Id, Mem0Routes
from souvenir.core.types import Role
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, SEARCHING, Reader, RunningService, Writer
from souvenir.store.memories.conditions import ALWAYS

routes = Mem0Routes("mem0")

routes.post("/mem0/memories", cost=CostClass.WRITE, large_body=True)(platform.add)
routes.get("/mem0/memories/{memory_id}", cost=CostClass.LIGHT, access=REMEMBERED)(platform.get)
routes.get("/mem0/memories/{memory_id}/history", cost=CostClass.LIGHT, access=REMEMBERED)(platform.history)
routes.delete("/mem0/memories/{memory_id}", cost=CostClass.WRITE)(changes.delete)
routes.delete("/mem0/memories", cost=CostClass.LONG)(changes.delete_all)


class ServerSearch(Entities):
    query: QueryText
    filters: dict[str, Any] | None = None
    top_k: int = Field(default=20, ge=1, le=MAX_TOP_K)
    threshold: float | None = Field(default=None, ge=0, le=1)


@routes.get("/mem0/memories", cost=CostClass.SEARCH, access=REMEMBERED)
def list_memories(
    scope: Reader,
    service: RunningService,
    request: Request,
    user_id: Annotated[UserName | None, Query()] = None,
    agent_id: Annotated[AgentId | None, Query()] = None,
    run_id: Annotated[SessionId | None, Query()] = None,
    top_k: Annotated[int, Query(ge=1, le=MAX_TOP_K)] = 100,
) -> Mem0Results:
    """List the newest memories of a user, an agent and a run, or without these of the key's agent."""
    listed = ListRequest(filters=_named(user_id=user_id, agent_id=agent_id, run_id=run_id))
    return Mem0Results(results=platform.get_all(listed, scope, service, request, page_size=top_k).results)


@routes.post("/mem0/search", cost=CostClass.SEARCH, access=SEARCHING, idempotent=True)
def search_memories(body: ServerSearch, scope: Reader, service: RunningService, request: Request) -> Mem0Results:
    """Find the memories that best match a query."""
    named = _named(user_id=body.user_id, agent_id=body.agent_id, app_id=body.app_id, run_id=body.run_id)
    filters = {"AND": [named, body.filters or {}]}
    wanted = SearchMem0(query=body.query, filters=filters, top_k=body.top_k, threshold=body.threshold)
    return platform.search(wanted, scope, service, request)


@routes.put("/mem0/memories/{memory_id}", cost=CostClass.WRITE)
def update_memory(
    memory_id: Mem0Id, body: UpdateMem0, scope: Writer, service: RunningService, request: Request
) -> Mem0Done:
    """Change a memory."""
    changes.update(memory_id, body, scope, service, request)
    return Mem0Done(message="Memory updated successfully!")


@routes.post("/mem0/reset", cost=CostClass.LONG)
def reset(scope: Writer, service: RunningService, request: Request) -> Mem0Done:
    """Delete the memories of every agent that the key is for, except pinned ones, and end the jobs of these agents."""
    for agent in every_agent(request, scope, Role.READ_WRITE):
        delete_part(service, Part(agent, ALWAYS))
    return Mem0Done(message="All memories reset")


def _named(**entities: str | None) -> dict[str, Any]:
    return {name: value for name, value in entities.items() if value is not None}
