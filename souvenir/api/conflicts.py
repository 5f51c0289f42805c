"""Memories that contradict each other: the list of them, and letting the newer one of each two win."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.caller import Reader, RunningService, Writer
from souvenir.api.errors import error_responses
from souvenir.api.json_route import router
from souvenir.api.records import RECORD_EXAMPLE, MemoryRecord, record_fields
from souvenir.moments import utc_now
from souvenir.tending.conflicts import MAX_AT_ONCE, NEWEST_WINS, Contradiction, Resolution, Review

routes = router("conflicts")

MAX_PAGE = 500

_OLDER: dict[str, Any] = {**RECORD_EXAMPLE, "id": 7, "text": "The billing service stays on Postgres 16."}


class ConflictRecord(MemoryRecord):
    """The memory that carries the flag, and the other one."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{**RECORD_EXAMPLE, "conflicts_with": 7, "conflicting_memory": _OLDER}]},
    )

    conflicts_with: int = Field(description="The id of the other one.")
    conflicting_memory: MemoryRecord
    needs_review: bool | None = Field(
        default=None, description="True if somebody has to decide; `review_reason` says why."
    )
    review_reason: Review | None = None

    @classmethod
    def of_both(cls, found: Contradiction) -> ConflictRecord:
        now, review = utc_now(), found.review
        fields = {
            **record_fields(found.flagger, now),
            "conflicts_with": found.other.id,
            "conflicting_memory": record_fields(found.other, now),
        }
        return cls.model_validate(
            fields if review is None else {**fields, "needs_review": True, "review_reason": review}
        )


class ConflictList(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conflicts": [{**RECORD_EXAMPLE, "conflicts_with": 7, "conflicting_memory": _OLDER}],
                    "count": 1,
                    "total": 1,
                    "offset": 0,
                    "has_more": False,
                }
            ]
        }
    )

    conflicts: list[ConflictRecord] = Field(description="Of living memories, the newest flag first.")
    count: int = Field(description="Of this page.")
    total: int
    offset: int
    has_more: bool


class ResolveConflictsRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"dry_run": True, "max": 0}]})

    dry_run: bool = Field(default=True, description="Change nothing, and answer what would be.")
    max: int = Field(
        default=0, ge=0, le=MAX_AT_ONCE, description=f"Settle at most so many; 0: {MAX_AT_ONCE}, which is the most."
    )


class SettledRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"kept": 12, "archived": 7, "flagger": 12}]})

    kept: int = Field(description="The newer one.")
    archived: int
    flagger: int = Field(description="The one that carried the flag.")


class FlagRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"id": 12, "conflicts_with": 7}]})

    id: int
    conflicts_with: int


class ReviewRecord(FlagRecord):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"id": 12, "conflicts_with": 7, "reason": "cross_source"}]}
    )

    reason: Review = Field(
        description="`cross_source`: not of one source; `undated`: it cannot be said which is newer; `pinned_loser`: "
        "the older one is pinned; `less_trusted`: the newer one is of a less trusted `origin_class`."
    )


class ResolveConflictsResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "success": True,
                    "dry_run": True,
                    "policy": NEWEST_WINS,
                    "resolved": [{"kept": 12, "archived": 7, "flagger": 12}],
                    "needs_review": [{"id": 13, "conflicts_with": 8, "reason": "undated"}],
                    "orphaned": [],
                    "resolved_count": 1,
                    "needs_review_count": 1,
                    "orphaned_count": 0,
                }
            ]
        }
    )

    success: bool
    dry_run: bool
    policy: str
    resolved: list[SettledRecord]
    needs_review: list[ReviewRecord] = Field(description="Left as they are.")
    orphaned: list[FlagRecord] = Field(description="Flags that go, since one of the two is archived already.")
    resolved_count: int
    needs_review_count: int
    orphaned_count: int

    @classmethod
    def of(cls, found: Resolution, *, dry_run: bool) -> ResolveConflictsResponse:
        return cls(
            success=True,
            dry_run=dry_run,
            policy=NEWEST_WINS,
            resolved=[
                SettledRecord(kept=one.kept.id, archived=one.archived.id, flagger=one.flag[0]) for one in found.settled
            ],
            needs_review=[
                ReviewRecord(id=flagger, conflicts_with=other, reason=reason)
                for (flagger, other), reason in found.needs_review
            ],
            orphaned=[FlagRecord(id=flagger, conflicts_with=other) for flagger, other in found.orphaned],
            resolved_count=len(found.settled),
            needs_review_count=len(found.needs_review),
            orphaned_count=len(found.orphaned),
        )


@routes.get("/memory/conflicts", summary="List contradictions", responses=error_responses())
def list_conflicts(
    scope: Reader,
    service: RunningService,
    limit: Annotated[int, Query(description=f"At most so many; below 1 is 1, above {MAX_PAGE} is {MAX_PAGE}.")] = 50,
    offset: Annotated[int, Query(description="Skip so many; below 0 is 0.")] = 0,
) -> ConflictList:
    """List memories that say otherwise than another one, each with that other."""
    start = min(max(offset, 0), 2**31)
    found, total = service.tending.conflicts.page(scope, limit=min(max(limit, 1), MAX_PAGE), offset=start)
    records = [ConflictRecord.of_both(one) for one in found]
    return ConflictList(
        conflicts=records,
        count=len(records),
        total=total,
        offset=start,
        has_more=start + len(records) < total,
    )


@routes.post("/memory/conflicts/resolve", summary="Resolve contradictions", responses=error_responses())
def resolve_conflicts(
    body: ResolveConflictsRequest, scope: Writer, service: RunningService
) -> ResolveConflictsResponse:
    """Archive the older one of two memories that contradict each other, where a rule can say which that is."""
    found = service.tending.conflicts.resolve(scope, dry_run=body.dry_run, limit=body.max or None)
    return ResolveConflictsResponse.of(found, dry_run=body.dry_run)
