"""Every change of a memory."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.caller import Reader, RunningService
from souvenir.api.errors import error_responses
from souvenir.api.fields import MemoryId, wire_time
from souvenir.api.json_route import router
from souvenir.api.transfer_lines import written_state
from souvenir.past.reading import MemoryHistory
from souvenir.types import HistoryEntry

routes = router("read")

_STATE_EXAMPLE: dict[str, Any] = {
    "text": "The billing service moves to Postgres 17 in May.",
    "source": "claude-code/billing",
    "key": None,
    "metadata": {"category": "decision"},
    "document_at": None,
    "pinned": False,
    "archived": False,
    "origin_class": "user",
    "valid_to": None,
    "created_at": "2025-04-02T09:30:00.000000+00:00",
    "updated_at": "2025-04-02T09:30:00.000000+00:00",
}
_CHANGE_EXAMPLE: dict[str, Any] = {
    "action": "add",
    "actor": "key:0b6f3c52-5d0c-4c55-9a0e-3f6a3f0f6a51",
    "at": "2025-04-02T09:30:00.000000+00:00",
    "job_id": None,
    "before": None,
    "after": _STATE_EXAMPLE,
}


class MemoryChange(BaseModel):
    """One change of a memory."""

    model_config = ConfigDict(json_schema_extra={"examples": [_CHANGE_EXAMPLE]})

    action: str = Field(description="Such as `add`, `update`, `archive`, `superseded`, `delete`.")
    actor: str = Field(description="Whose key made it.")
    at: str
    job_id: str | None = Field(description="The job whose change it is; null: a request's.")
    before: dict[str, Any] | None = Field(
        description="Its fields before it; null: there was nothing, it is forgotten, or it lay outside of what you see."
    )
    after: dict[str, Any] | None = Field(description="Its fields after it.")

    @classmethod
    def of(cls, entry: HistoryEntry) -> MemoryChange:
        before, after = (written_state(state) for state in (entry.before, entry.after))
        return cls(
            action=entry.action,
            actor=entry.actor,
            at=wire_time(entry.at),
            job_id=entry.job_id,
            before=before,
            after=after,
        )


class HistoryResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "memory_id": 12,
                    "deleted": False,
                    "supersedes": [],
                    "superseded_by": None,
                    "changes": [_CHANGE_EXAMPLE],
                    "count": 1,
                }
            ]
        }
    )

    memory_id: int
    deleted: bool = Field(description="It is forgotten: who changed it when is left, and no text.")
    supersedes: list[int] = Field(description="The memories in whose place it stands.")
    superseded_by: int | None = Field(description="The memory that stands in its place.")
    changes: list[MemoryChange] = Field(description="Oldest first.")
    count: int = Field(description="Of `changes`.")

    @classmethod
    def of(cls, memory_id: int, history: MemoryHistory) -> HistoryResponse:
        return cls(
            memory_id=memory_id,
            deleted=history.deleted,
            supersedes=list(history.supersedes),
            superseded_by=history.superseded_by,
            changes=[MemoryChange.of(entry) for entry in history.entries],
            count=len(history.entries),
        )


@routes.get("/memory/{memory_id}/history", summary="Show every change of a memory", responses=error_responses(404))
def memory_history(memory_id: MemoryId, scope: Reader, service: RunningService) -> HistoryResponse:
    """Show who changed a memory when and how, oldest first, and what took its place."""
    return HistoryResponse.of(memory_id, service.past.history(scope, memory_id))
