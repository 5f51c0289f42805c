"""Facts: what memories say, one statement each; reading them, setting them, and splitting what has none."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.caller import Reader, RunningService, Writer
from souvenir.api.errors import error_responses
from souvenir.api.fields import FactList, MemoryId, OptionalSource
from souvenir.api.json_route import router
from souvenir.api.long_work import ACCEPTED, DEFAULT_WAIT_S, WaitS
from souvenir.api.pages import Limit, Offset
from souvenir.api.records import FactRecord
from souvenir.api.write_models import facts_fields
from souvenir.facts.facts import Stored, Wanted
from souvenir.types import FactsBy, MemoryPatch

routes = router("facts")

_FACT: dict[str, Any] = {
    "id": 31,
    "text": "Billing runs on Postgres 17",
    "made_by": "model",
    "created_at": "2025-04-02T09:30:00.000000+00:00",
}


class ListedFact(FactRecord):
    model_config = ConfigDict(json_schema_extra={"examples": [{**_FACT, "memory_id": 12}]})

    memory_id: int


class FactsResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"facts": [{**_FACT, "memory_id": 12}], "total": 1, "offset": 0, "limit": 20}]}
    )

    facts: list[ListedFact] = Field(description="In the order of their memories and in that of each memory.")
    total: int = Field(description="How many there are on all pages.")
    offset: int
    limit: int


class SetFactsRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"facts": ["Billing runs on Postgres 17"]}]})

    facts: FactList | None = Field(
        default=None, description="All that it shall have; those that it has already keep their ids. None: split it."
    )


class SetFactsResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"memory_id": 12, "facts": [_FACT], "facts_created": 1, "facts_by": "model", "split_pending": False}
            ]
        }
    )

    memory_id: int
    facts: list[FactRecord] = Field(description="All that it has now.")
    facts_created: int = Field(description="How many those are.")
    facts_by: FactsBy | None = Field(default=None, description="Who split it, if it has any.")
    split_pending: bool = Field(description="Whether the model is asked again afterwards.")
    split_failure: str | None = Field(default=None, description="Why no model split it, though one was to.")

    @classmethod
    def of(cls, stored: Stored) -> SetFactsResponse:
        facts = [FactRecord.of(fact) for fact in stored.memory.facts]
        return cls(memory_id=stored.memory.id, facts=facts, **facts_fields(stored))


class SplitRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"source_prefix": "claude-code/", "limit": 100}]})

    source_prefix: OptionalSource = Field(default="", description="Only of sources that begin with this.")
    limit: int = Field(default=100, ge=1, le=1000, description="Memories at most; the model is asked about each.")


class SplitResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"split": 2, "by_model": 1, "by_sentences": 1, "changed": 0, "has_more": False}]
        }
    )

    split: int = Field(description="Memories that have facts of now.")
    by_model: int
    by_sentences: int = Field(description="That need no model, or of which it said nothing that can be used.")
    changed: int = Field(description="Left alone, since somebody changed them meanwhile.")
    has_more: bool = Field(description="Whether there are others.")


@routes.get("/facts", summary="List facts", responses=error_responses(404))
def list_facts(
    scope: Reader,
    service: RunningService,
    memory_id: Annotated[MemoryId | None, Query(description="Only those of this memory.")] = None,
    offset: Offset = 0,
    limit: Limit = 20,
) -> FactsResponse:
    """List the facts of one memory, or of all of them, page by page."""
    page = service.facts.page(scope, memory_id, offset=offset, limit=limit)
    facts = [ListedFact(**FactRecord.of(fact).model_dump(), memory_id=owner) for owner, fact in page.facts]
    return FactsResponse(facts=facts, total=page.total, offset=offset, limit=limit)


@routes.put("/memory/{memory_id}/facts", summary="Set or split facts", responses=error_responses(404, 409))
def set_facts(
    memory_id: MemoryId, scope: Writer, service: RunningService, body: SetFactsRequest | None = None
) -> SetFactsResponse:
    """Give a memory these facts in the place of those that it has, or without any split its text anew."""
    if body is None or body.facts is None:
        return SetFactsResponse.of(service.facts.split_again(scope, memory_id))
    return SetFactsResponse.of(service.facts.update(scope, memory_id, MemoryPatch(), Wanted(body.facts)))


@routes.post(
    "/facts/split",
    summary="Split memories into facts",
    response_model=SplitResponse,
    responses={**error_responses(409), **ACCEPTED},
)
def split_facts(
    scope: Writer, service: RunningService, body: SplitRequest | None = None, wait_s: WaitS = DEFAULT_WAIT_S
) -> SplitResponse | JSONResponse:
    """Split living memories that have no facts, and those that wait for it."""
    asked = body or SplitRequest()
    parameters = {"waiting_only": False, "source": asked.source_prefix, "limit": asked.limit}
    result = service.splitting_work.run(service.facts.later.kind, scope, parameters, wait_s=wait_s)
    return result if isinstance(result, JSONResponse) else SplitResponse.model_validate(result)
