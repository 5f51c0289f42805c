"""What an agent has: whom it talks with, and how much of everything there is."""

from __future__ import annotations

from typing import Self

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, agent_scope
from souvenir.api.errors import error_responses
from souvenir.api.fields import optional_wire_time
from souvenir.api.json_route import router
from souvenir.api.pages import Limit, Offset
from souvenir.api.session_models import UserPage, UserRecord
from souvenir.conversation.agents import AgentStats

routes = router("agents")


class AgentStatsResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "messages": 2,
                    "sessions": 1,
                    "users": 1,
                    "blocks": 1,
                    "memories": 0,
                    "first_message_at": "2025-04-02T09:30:00.000000+00:00",
                    "last_message_at": "2025-04-02T09:30:05.000000+00:00",
                    "index_bytes": 24704,
                }
            ]
        }
    )

    messages: int
    sessions: int
    users: int
    blocks: int
    memories: int = Field(description="Archived ones included.")
    first_message_at: str | None = Field(description="The earliest `created_at` of a message.")
    last_message_at: str | None = Field(description="The latest.")
    index_bytes: int = Field(description="Memory that the agent's indexes take now; 0 before the first search.")

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


@routes.get("/agents/{agent_name}/users", summary="List an agent's users", responses=error_responses(404))
def list_users(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    offset: Offset = 0,
    limit: Limit = 100,
) -> UserPage:
    """List whom an agent talks with, in the order of their names."""
    found, total = service.sessions.users(agent_scope(request, agent_name), offset=offset, limit=limit)
    return UserPage(users=[UserRecord.of(one) for one in found], total=total, offset=offset, limit=limit)


@routes.get("/agents/{agent_name}/stats", summary="Count what an agent has", responses=error_responses(404))
def agent_stats(agent_name: AgentName, _: Reader, service: RunningService, request: Request) -> AgentStatsResponse:
    """Count an agent's messages, sessions, users, blocks and memories."""
    return AgentStatsResponse.of(service.agents.stats(agent_scope(request, agent_name)))
