"""The export of an agent: all of its data as typed JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi.responses import StreamingResponse

from souvenir.api.agents import AgentRecord, UserRecord
from souvenir.api.blocks import MemoryBlock
from souvenir.api.fields import wire_time
from souvenir.api.messages import message_fields
from souvenir.api.parameters import AgentReader
from souvenir.api.sessions import SessionRecord
from souvenir.api.transfer import NDJSON
from souvenir.api.transfer_lines import json_line, memory_said
from souvenir.conversations.agents import agent_lines
from souvenir.core.timestamps import utc_now
from souvenir.core.types import HistoryEntry, Memory
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import RunningService
from souvenir.server.routing import Routes
from souvenir.store.messages.agents import Agent, AgentCounts
from souvenir.store.messages.blocks import Block
from souvenir.store.messages.messages import Message
from souvenir.store.messages.sessions import Session, User

routes = Routes("agents")

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
    cost=CostClass.LONG,
    sdk="agents.export",
    response_class=StreamingResponse,
    errors=[404],
    responses={
        200: {
            "description": "One `header` line with the counts, then `agent`, then every `user`, `session`, "
            "`message` (oldest first), `block` and `memory`.",
            "content": {NDJSON: {"schema": {"type": "string"}, "example": LINE_EXAMPLE}},
        },
    },
)
def export_agent(scope: AgentReader, service: RunningService) -> StreamingResponse:
    """Stream a consistent snapshot of an agent's data, one JSON object per line."""
    service.audit.act(scope, "export")
    lines = agent_lines(service.engine, scope, TypedLines())
    return StreamingResponse(service.transfer.exports.stream_lines(lines), media_type=NDJSON)
