"""Facts, the statements of memories: list them, set them, and split memories into them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import FactList, MemoryId, OptionalSource
from souvenir.api.memories import FactRecord
from souvenir.api.memory_writes import facts_fields
from souvenir.api.parameters import Limit, Offset
from souvenir.core.types import FactsBy, FactsOutcome, MemoryPatch
from souvenir.memories.fact_splitting import given
from souvenir.server.job_responses import ACCEPTED, DEFAULT_WAIT_S, WaitS
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, Reader, RunningService, Writer
from souvenir.server.routing import Routes

routes = Routes("facts")


class ListedFact(FactRecord):
    memory_id: int


class FactsResponse(BaseModel):
    facts: list[ListedFact] = Field(description="Ordered by memory, then by position.")
    total: int = Field(description="The total number of items on all pages.")
    offset: int
    limit: int


class SetFactsRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"facts": ["Billing runs on Postgres 17"]}]})

    facts: FactList | None = Field(
        default=None,
        description="The facts, replacing all present ones; unchanged facts keep their ids. Without "
        "facts the text is split.",
    )


class SetFactsResponse(BaseModel):
    memory_id: int
    facts: list[FactRecord] = Field(description="All current facts.")
    facts_created: int = Field(description="The number of facts.")
    facts_by: FactsBy | None = Field(default=None, description="Who split the text into facts, if it has any.")
    split_pending: bool = Field(description="True if the model is called again later.")
    split_failure: str | None = Field(
        default=None, description="Why the model did not split it, although it was requested."
    )

    @classmethod
    def of(cls, outcome: FactsOutcome) -> SetFactsResponse:
        facts = [FactRecord.of(fact) for fact in outcome.memory.facts]
        return cls(memory_id=outcome.memory.id, facts=facts, **facts_fields(outcome))


class SplitRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"source_prefix": "claude-code/", "limit": 100}]})

    source_prefix: OptionalSource = Field(default="", description="Only memories whose source starts with this prefix.")
    limit: int = Field(
        default=100, ge=1, le=1000, description="Maximum number of memories; the model is called for each."
    )


class SplitResponse(BaseModel):
    split: int = Field(description="The number of memories that now have facts.")
    by_model: int
    by_sentences: int = Field(description="Memories that need no model, or for which its answer was unusable.")
    changed: int = Field(description="Memories that were skipped because they were changed meanwhile.")
    has_more: bool = Field(description="True if more memories are left.")


@routes.get(
    "/facts",
    summary="List facts",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="facts.list",
    errors=[404],
)
def list_facts(
    scope: Reader,
    service: RunningService,
    memory_id: Annotated[MemoryId | None, Query(description="Only the facts of this memory.")] = None,
    offset: Offset = 0,
    limit: Limit = 20,
) -> FactsResponse:
    """List the facts of one memory or of all memories, page by page."""
    page = service.engine.facts.page(scope, memory_id, offset=offset, limit=limit)
    facts = [ListedFact(**FactRecord.of(fact).model_dump(), memory_id=owner) for owner, fact in page.facts]
    return FactsResponse(facts=facts, total=page.total, offset=offset, limit=limit)


@routes.put(
    "/memory/{memory_id}/facts",
    summary="Set the facts of a memory",
    cost=CostClass.LONG,
    sdk="facts.set",
    errors=[404, 409],
)
def set_facts(
    memory_id: MemoryId, scope: Writer, service: RunningService, body: SetFactsRequest | None = None
) -> SetFactsResponse:
    """Replace the facts of a memory, or split its text again if no facts are given."""
    if body is None or body.facts is None:
        return SetFactsResponse.of(service.engine.facts.split_again(scope, memory_id))
    return SetFactsResponse.of(service.engine.update(scope, memory_id, MemoryPatch(facts=given(body.facts).facts)))


@routes.post(
    "/facts/split",
    summary="Split memories into facts",
    cost=CostClass.LONG,
    sdk="facts.split",
    response_model=SplitResponse,
    errors=[409],
    responses=ACCEPTED,
)
def split_facts(
    scope: Writer, service: RunningService, body: SplitRequest | None = None, wait_s: WaitS = DEFAULT_WAIT_S
) -> SplitResponse | JSONResponse:
    """Split memories that have no facts, and those that are queued for splitting."""
    asked = body or SplitRequest()
    parameters = {"waiting_only": False, "source": asked.source_prefix, "limit": asked.limit}
    result = service.splitting_work.run(service.engine.facts.queue.kind, scope, parameters, wait_s=wait_s)
    return result if isinstance(result, JSONResponse) else SplitResponse.model_validate(result)
