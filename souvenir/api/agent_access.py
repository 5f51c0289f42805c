"""What of an agent its keys may read."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.agents import AgentName
from souvenir.api.caller import Admin, Reader, RunningService, agent_scope
from souvenir.api.errors import error_responses
from souvenir.api.json_route import router
from souvenir.types import AccessLevels

routes = router("agents")

_EXAMPLE: dict[str, Any] = {"quick_memory": True, "full_memory": False, "logs": False}

_QUICK = "Searching, with at most 5 results."
_FULL = "All that is remembered, and searching without that limit."
_LOGS = "What was said: messages, sessions, users and exports of them."


class AccessRequest(BaseModel):
    """What is left out, or null, stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    quick_memory: bool | None = Field(default=None, description=_QUICK)
    full_memory: bool | None = Field(default=None, description=_FULL)
    logs: bool | None = Field(default=None, description=_LOGS)

    def changes(self) -> dict[str, bool]:
        return self.model_dump(exclude_none=True)


class AccessRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    quick_memory: bool = Field(description=_QUICK)
    full_memory: bool = Field(description=_FULL)
    logs: bool = Field(description=_LOGS)

    @classmethod
    def of(cls, levels: AccessLevels) -> AccessRecord:
        return cls(quick_memory=levels.quick_memory, full_memory=levels.full_memory, logs=levels.logs)


@routes.get("/agents/{agent_name}/access", summary="Get an agent's access levels", responses=error_responses(404))
def get_access(agent_name: AgentName, _: Reader, service: RunningService, request: Request) -> AccessRecord:
    """Get what of an agent may be read with keys that are no admin's."""
    return AccessRecord.of(service.agents.get(agent_scope(request, agent_name)).access)


@routes.put("/agents/{agent_name}/access", summary="Set an agent's access levels", responses=error_responses(404))
def set_access(
    agent_name: AgentName, body: AccessRequest, _: Admin, service: RunningService, request: Request
) -> AccessRecord:
    """Give or take what of an agent may be read; it holds from the next request on."""
    scope = agent_scope(request, agent_name)
    levels = service.agents.set_access(scope, body.changes())
    service.audit.act(scope, "access.set", agent_name)
    return AccessRecord.of(levels)
