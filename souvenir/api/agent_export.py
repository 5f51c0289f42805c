"""Everything that an agent has, as lines of JSON, each with its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from souvenir.api.agents import AgentName, AgentRecord
from souvenir.api.block_models import MemoryBlock
from souvenir.api.caller import Reader, RunningService, agent_scope
from souvenir.api.errors import error_responses
from souvenir.api.fields import wire_time
from souvenir.api.json_route import router
from souvenir.api.message_models import message_fields
from souvenir.api.session_models import SessionRecord, UserRecord
from souvenir.api.transfer_lines import json_line, memory_said
from souvenir.api.transfer_models import NDJSON
from souvenir.conversation.export import agent_lines
from souvenir.moments import utc_now
from souvenir.store.agents import Agent, AgentCounts
from souvenir.store.blocks import Block
from souvenir.store.messages import Message
from souvenir.store.sessions import Session, User
from souvenir.types import HistoryEntry, Memory

routes = router("agents")

FORMAT_VERSION = "1.0.0"

LINE_EXAMPLE = (
    '{"type":"message","id":"0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11","agent_id":"6f1c2b1e-8d5e-4c7e-9a4f-0f3f6f3f2b7a",'
    '"role":"user","content":"My favourite colour is blue.","created_at":"2025-04-02T09:30:00.000000+00:00",'
    '"metadata":null,"session_id":"2025-04-02","user":"alice","name":null,"edited_at":null}\n'
)


class TypedLines:
    """Implements `AgentFormat` with the fields that the other routes answer."""

    def header(self, agent: Agent, counts: AgentCounts) -> bytes:
        said = {
            "exported_at": wire_time(utc_now()),
            "agent_name": agent.name,
            "users": counts.users,
            "sessions": counts.sessions,
            "messages": counts.messages,
            "blocks": counts.blocks,
            "memories": counts.memories,
            "version": FORMAT_VERSION,
        }
        return _line("header", said)

    def agent(self, agent: Agent) -> bytes:
        return _line("agent", {**AgentRecord.of(agent).model_dump(), "access": asdict(agent.access)})

    def user(self, user: User) -> bytes:
        return _line("user", UserRecord.of(user).model_dump())

    def session(self, session: Session) -> bytes:
        return _line("session", SessionRecord.of(session).model_dump())

    def message(self, message: Message) -> bytes:
        return _line("message", {name: said for name, said in message_fields(message).items() if name != "similarity"})

    def block(self, block: Block) -> bytes:
        return _line("block", MemoryBlock.of(block).model_dump())

    def memory(self, memory: Memory, _: Sequence[HistoryEntry] | None) -> bytes:
        return _line("memory", memory_said(memory))


def _line(of_type: str, said: Mapping[str, Any]) -> bytes:
    return json_line({"type": of_type, **said})


@routes.get(
    "/agents/{agent_name}/export",
    summary="Export an agent",
    response_class=StreamingResponse,
    responses={
        **error_responses(404),
        200: {
            "description": "A line `header` with the counts, then `agent`, and each `user`, `session`, `message` "
            "(oldest first), `block` and `memory`.",
            "content": {NDJSON: {"schema": {"type": "string"}, "example": LINE_EXAMPLE}},
        },
    },
)
def export_agent(agent_name: AgentName, _: Reader, service: RunningService, request: Request) -> StreamingResponse:
    """Stream one state of all that an agent has, a line of JSON each."""
    scope = agent_scope(request, agent_name)
    service.audit.act(scope, "export")
    lines = agent_lines(service.engine, scope, TypedLines())
    return StreamingResponse(service.transfer.exports.stream_lines(lines), media_type=NDJSON)
