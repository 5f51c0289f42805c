"""Duplicates: check whether a text is new, and remove memories that state the same."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import Text
from souvenir.api.memories import MemoryRecord, record_fields
from souvenir.core.timestamps import utc_now
from souvenir.core.types import JsonObject, Memory
from souvenir.jobs.handler import AtOnce
from souvenir.memories.deduplication import PAIRS_SHOWN, Deduplication
from souvenir.server.job_responses import ACCEPTED, DEFAULT_WAIT_S, JOB_ABOVE_MEMORIES, WaitS
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import SEARCHING, Admin, Engine, Reader, RunningService
from souvenir.server.routing import Routes

routes = Routes("duplicates")


class IsNovelRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Billing is moved to Postgres 17 in May."}]})

    text: Text = Field(description="The text to check.")
    threshold: float = Field(
        default=0.88, ge=0.0, le=1.0, description="The cosine similarity at which the text counts as known."
    )


class SimilarMemory(MemoryRecord):
    similarity: float = Field(description="Cosine similarity to the text.")


class IsNovelResponse(BaseModel):
    is_novel: bool
    threshold: float
    most_similar: SimilarMemory | None = Field(
        description="The most similar memory, even if the text is new; null in an empty namespace."
    )


class DeduplicateRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"threshold": 0.95, "dry_run": True}]})

    threshold: float = Field(
        default=0.9, ge=0.5, le=1.0, description="The minimum cosine similarity of duplicates in one source."
    )
    dry_run: bool = Field(default=True, description="Dry run: delete nothing, and return what would be deleted.")


class DuplicatePairRecord(BaseModel):
    id_a: int = Field(description="The id of the memory that is kept.")
    id_b: int
    source: str
    similarity: float
    text_a: str = Field(examples=["The billing service moves to Postgres 17 in May."])
    text_b: str = Field(examples=["Billing is moved to Postgres 17 in May."])


class DeduplicateResponse(BaseModel):
    """After a dry run `would_remove` and `pairs`, else `removed` and `remaining`."""

    duplicate_pairs: int
    dry_run: bool
    would_remove: int | None = None
    pairs: list[DuplicatePairRecord] | None = Field(default=None, description=f"The first {PAIRS_SHOWN}.")
    removed: int | None = None
    remaining: int | None = None

    @classmethod
    def of(cls, result: JsonObject, memories: Mapping[int, Memory]) -> DeduplicateResponse:
        """:param memories: Those of the pairs, by id; a pair that is gone by now is left out."""
        if not result["dry_run"]:
            return cls(
                duplicate_pairs=result["found"],
                removed=result["removed"],
                remaining=result["remaining"],
                dry_run=False,
            )
        pairs = [
            DuplicatePairRecord(
                id_a=kept,
                id_b=duplicate,
                source=memories[kept].source,
                similarity=similarity,
                text_a=memories[kept].text,
                text_b=memories[duplicate].text,
            )
            for kept, duplicate, similarity in result["pairs"]
            if kept in memories and duplicate in memories
        ]
        return cls(duplicate_pairs=result["found"], would_remove=result["found"], pairs=pairs, dry_run=True)


@routes.post(
    "/memory/is-novel",
    summary="Check whether a text is new",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="memories.is_novel",
    idempotent=True,
)
def is_novel(body: IsNovelRequest, scope: Reader, engine: Engine) -> IsNovelResponse:
    """Compare a text with its most similar memory; nothing is stored."""
    nearest = engine.nearest(scope, body.text)
    if nearest is None:
        return IsNovelResponse(is_novel=True, threshold=body.threshold, most_similar=None)
    memory, similarity = nearest
    fields = record_fields(memory, utc_now())
    similar = SimilarMemory.model_validate({**fields, "similarity": round(similarity, 6)})
    return IsNovelResponse(is_novel=similarity < body.threshold, threshold=body.threshold, most_similar=similar)


@routes.post(
    "/memory/deduplicate",
    summary="Remove duplicates",
    cost=CostClass.LONG,
    sdk="memories.deduplicate",
    response_model=DeduplicateResponse,
    errors=[409],
    responses=ACCEPTED,
)
def deduplicate(
    body: DeduplicateRequest, scope: Admin, service: RunningService, wait_s: WaitS = DEFAULT_WAIT_S
) -> DeduplicateResponse | JSONResponse:
    """Find duplicate memories within each source and keep the oldest of each; a backup is made first."""
    if service.engine.count(scope) > JOB_ABOVE_MEMORIES:
        result = service.long_work.run(Deduplication.kind, scope, body.model_dump(), wait_s=wait_s)
    else:
        result = service.deduplication.sweep(scope, **body.model_dump(), progress=AtOnce({}))
    if isinstance(result, JSONResponse):
        return result
    shown = [id_ for kept, duplicate, _ in result["pairs"] for id_ in (kept, duplicate)]
    return DeduplicateResponse.of(result, service.engine.get(scope, shown))
