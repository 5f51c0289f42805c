"""Forgetting agents and what was said with them. A restored backup brings it back; an erasure is for good."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from souvenir.api.agents import AgentName
from souvenir.api.caller import RunningService, Writer, agent_scope
from souvenir.api.conversation_fields import MessageId, SessionId, UserName
from souvenir.api.errors import error_responses
from souvenir.api.json_route import router
from souvenir.store.removal import Removed
from souvenir.store.selection import Chooses

routes = router("agents")

COUNTS_EXAMPLE: JsonDict = {
    "agents": 1,
    "users": 2,
    "sessions": 3,
    "messages": 120,
    "memories": 14,
    "facts": 31,
    "tags": 9,
    "blocks": 2,
    "block_versions": 5,
    "links": 1,
    "history": 20,
    "passages": 131,
    "vectors": 131,
    "mentions": 0,
    "concepts": 0,
    "idempotency_keys": 4,
    "jobs": 1,
}


class RemovedCounts(BaseModel):
    """How many rows went, by what they are."""

    model_config = ConfigDict(json_schema_extra={"examples": [COUNTS_EXAMPLE]})

    agents: int
    users: int
    sessions: int
    messages: int
    memories: int
    facts: int = Field(default=0, description="Of memories.")
    tags: int = Field(default=0, description="Of memories, each as often as one had it.")
    blocks: int
    block_versions: int = Field(description="What the blocks were and are.")
    links: int = Field(description="Of memories with each other.")
    history: int = Field(description="Changes of memories that no longer say what they were.")
    passages: int = Field(description="Pieces of text that were searched.")
    vectors: int
    mentions: int = Field(default=0, description="Of concepts, in messages and memories.")
    concepts: int = Field(default=0, description="Those that nothing mentions any more.")
    idempotency_keys: int = Field(description="Requests that would have been answered again with what is gone.")
    jobs: int = Field(description="Of the agent, finished ones included.")

    @classmethod
    def of(cls, removed: Removed) -> RemovedCounts:
        return cls(**asdict(removed))


class RemovedResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"success": True, "removed": COUNTS_EXAMPLE}]})

    success: bool
    removed: RemovedCounts

    @classmethod
    def of(cls, removed: Removed) -> RemovedResponse:
        return cls(success=True, removed=RemovedCounts.of(removed))


@routes.delete("/agents/{agent_name}", summary="Delete an agent", responses=error_responses(404))
def delete_agent(agent_name: AgentName, _: Writer, service: RunningService, request: Request) -> RemovedResponse:
    """Forget an agent with all that its namespace holds; its jobs end, and its name is free at once."""
    scope = agent_scope(request, agent_name)
    removed = service.removals.remove(scope, Chooses.AGENT)
    service.audit.act(scope, "agent.delete", detail=f"{removed.messages} messages, {removed.memories} memories")
    return RemovedResponse.of(removed)


@routes.delete("/agents/{agent_name}/users/{user}", summary="Delete a user", responses=error_responses(404))
def delete_user(
    agent_name: AgentName, user: UserName, _: Writer, service: RunningService, request: Request
) -> RemovedResponse:
    """Forget a user, their messages, the sessions in which nobody else has one, and what was learned with them."""
    scope = agent_scope(request, agent_name)
    removed = service.removals.remove(scope, Chooses.USER, user)
    service.audit.act(scope, "user.delete", detail=f"{removed.messages} messages, {removed.memories} memories")
    return RemovedResponse.of(removed)


@routes.delete("/sessions/{agent_name}/{session_id}", summary="Delete a session", responses=error_responses(404))
def delete_session(
    agent_name: AgentName, session_id: SessionId, _: Writer, service: RunningService, request: Request
) -> RemovedResponse:
    """Forget a session with every message of it, and what was learned in it."""
    return RemovedResponse.of(service.removals.remove(agent_scope(request, agent_name), Chooses.SESSION, session_id))


@routes.delete("/messages/{agent_name}/{message_id}", summary="Delete a message", responses=error_responses(404))
def delete_message(
    agent_name: AgentName, message_id: MessageId, _: Writer, service: RunningService, request: Request
) -> RemovedResponse:
    """Forget a message."""
    return RemovedResponse.of(service.removals.remove(agent_scope(request, agent_name), Chooses.MESSAGE, message_id))
