"""Erasing for good, with a receipt: no restore brings it back, and with `backups` no file of the store holds it."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from souvenir.api.agents import AgentName
from souvenir.api.caller import Admin, RunningService
from souvenir.api.errors import error_responses
from souvenir.api.fields import Clean, MemoryId, Source
from souvenir.api.json_route import router
from souvenir.api.long_work import ACCEPTED, DEFAULT_WAIT_S, WaitS
from souvenir.api.removals import COUNTS_EXAMPLE, RemovedCounts
from souvenir.erasure.erasing import Erasing
from souvenir.errors import NothingToDo
from souvenir.store.selection import Chooses, Selection

routes = router("privacy")

_BACKUP = "scheduled_20250402_093000"
_RECEIPT: JsonDict = {
    "removed": COUNTS_EXAMPLE,
    "postings": 1104,
    "tombstones": 4,
    "files_cleared": True,
    "backups_rewritten": [_BACKUP],
    "backups_dropped": [],
    "backups_holding": [],
}

_Name = Annotated[str, StringConstraints(min_length=1, max_length=500), Clean]


class EraseSelector(BaseModel):
    """An agent, or with one field more only that of it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent_name": "my_agent", "user": "ann"}]})

    agent_name: AgentName
    user: _Name | None = Field(
        default=None,
        description="With their messages, the sessions that are theirs alone, and what was learned with them.",
    )
    session_id: _Name | None = Field(default=None, description="With every message of it, and what was learned in it.")
    message_id: _Name | None = None
    memory_id: MemoryId | None = None
    source: Source | None = Field(default=None, description="Memories of this source, and of those below it.")
    block: _Name | None = Field(default=None, description="The label of a block, which goes with its history.")

    @model_validator(mode="after")
    def _one_at_most(self) -> Self:
        if len(self._parts()) > 1:
            raise ValueError("takes at most one field beside agent_name")
        return self

    def _parts(self) -> list[tuple[Chooses, str | int]]:
        fields = [(chooses, getattr(self, chooses)) for chooses in Chooses if chooses is not Chooses.AGENT]
        return [(chooses, value) for chooses, value in fields if value is not None]

    def selection(self) -> Selection:
        chooses, value = next(iter(self._parts()), (Chooses.AGENT, self.agent_name))
        return Selection(self.agent_name, chooses, value)


class EraseRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"selector": {"agent_name": "my_agent", "user": "ann"}, "confirm": True, "backups": True},
            ]
        }
    )

    selector: EraseSelector = Field(description="What shall be erased.")
    confirm: bool = Field(default=False, description="Must be true: an erasure cannot be undone.")
    backups: bool = Field(default=False, description="Write the backups anew that hold it, or drop them.")

    def selection(self) -> Selection:
        """:raises NothingToDo: If it is not confirmed."""
        if not self.confirm:
            raise NothingToDo("Nothing was erased; send confirm true to erase for good what the selector names")
        return self.selector.selection()


class EraseResponse(BaseModel):
    """The receipt."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RECEIPT]})

    removed: RemovedCounts
    postings: int = Field(description="Entries of the indexes of words that went.")
    tombstones: int = Field(description="What was written down so that no restore brings it back; also of backups.")
    files_cleared: bool = Field(
        description="Whether the database's files hold no byte of it; while a long read needs them, it is tried again."
    )
    backups_rewritten: list[str] = Field(description="Backups that held something erased and do not any more.")
    backups_dropped: list[str] = Field(description="Those, and files of old restores, that could only be removed.")
    backups_holding: list[str] = Field(description="What still holds something that was erased, now or earlier.")


@routes.post(
    "/erase",
    summary="Erase for good",
    response_model=EraseResponse,
    responses={**error_responses(400, 404), **ACCEPTED},
)
def erase(
    body: EraseRequest, scope: Admin, service: RunningService, wait_s: WaitS = DEFAULT_WAIT_S
) -> EraseResponse | JSONResponse:
    """Erase an agent or a part of what it has, so that no restore brings it back, and answer what went."""
    selection = body.selection()
    with service.removals.working() as work:
        parameters = service.erasing.begin(selection, work, backups=body.backups)
        service.audit.act(scope, "erase", work, detail=selection.chooses.value)
        result = service.long_work.run(Erasing.kind, scope, parameters, wait_s=wait_s, job_id=work)
    return result if isinstance(result, JSONResponse) else EraseResponse.model_validate(result)
