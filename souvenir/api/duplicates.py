"""What is said already: whether a text is new, and which memories say the same."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.caller import Admin, Engine, Reader, RunningService
from souvenir.api.errors import error_responses
from souvenir.api.fields import Text
from souvenir.api.json_route import router
from souvenir.api.long_work import ACCEPTED, DEFAULT_WAIT_S, JOB_ABOVE_MEMORIES, WaitS
from souvenir.api.records import RECORD_EXAMPLE, MemoryRecord, record_fields
from souvenir.jobs.deduplication import PAIRS_SHOWN, Deduplication
from souvenir.jobs.running import AtOnce
from souvenir.moments import utc_now
from souvenir.types import JsonObject, Memory

routes = router("duplicates")


class IsNovelRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Billing is moved to Postgres 17 in May."}]})

    text: Text = Field(description="What may be new.")
    threshold: float = Field(default=0.88, ge=0.0, le=1.0, description="Cosine from which the text is not new.")


class SimilarMemory(MemoryRecord):
    similarity: float = Field(description="Cosine to the text.")


class IsNovelResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"is_novel": False, "threshold": 0.88, "most_similar": {**RECORD_EXAMPLE, "similarity": 0.951203}}
            ]
        }
    )

    is_novel: bool
    threshold: float
    most_similar: SimilarMemory | None = Field(description="Also if the text is new; null in an empty namespace.")


class DeduplicateRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"threshold": 0.95, "dry_run": True}]})

    threshold: float = Field(
        default=0.9, ge=0.5, le=1.0, description="Cosine from which two texts of one source are the same."
    )
    dry_run: bool = Field(default=True, description="Delete nothing, and answer what would be.")


class DuplicatePairRecord(BaseModel):
    id_a: int = Field(description="The one that is kept.")
    id_b: int
    source: str
    similarity: float
    text_a: str
    text_b: str


class DeduplicateResponse(BaseModel):
    """After a dry run `would_remove` and `pairs`, else `removed` and `remaining`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "duplicate_pairs": 1,
                    "would_remove": 1,
                    "dry_run": True,
                    "pairs": [
                        {
                            "id_a": 12,
                            "id_b": 13,
                            "source": "claude-code/billing",
                            "similarity": 0.951203,
                            "text_a": "The billing service moves to Postgres 17 in May.",
                            "text_b": "Billing is moved to Postgres 17 in May.",
                        }
                    ],
                }
            ]
        }
    )

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


@routes.post("/memory/is-novel", summary="Ask whether a text is new", responses=error_responses())
def is_novel(body: IsNovelRequest, scope: Reader, engine: Engine) -> IsNovelResponse:
    """Compare a text with the memory most similar to it; nothing is stored."""
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
    response_model=DeduplicateResponse,
    responses={**error_responses(409), **ACCEPTED},
)
def deduplicate(
    body: DeduplicateRequest, scope: Admin, service: RunningService, wait_s: WaitS = DEFAULT_WAIT_S
) -> DeduplicateResponse | JSONResponse:
    """Find memories of one source that say the same and keep the oldest; a backup is made first."""
    if service.engine.count(scope) > JOB_ABOVE_MEMORIES:
        result = service.long_work.run(Deduplication.kind, scope, body.model_dump(), wait_s=wait_s)
    else:
        result = service.deduplication.sweep(scope, **body.model_dump(), progress=AtOnce({}))
    if isinstance(result, JSONResponse):
        return result
    shown = [id_ for kept, duplicate, _ in result["pairs"] for id_ in (kept, duplicate)]
    return DeduplicateResponse.of(result, service.engine.get(scope, shown))
