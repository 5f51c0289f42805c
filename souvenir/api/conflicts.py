"""Conflicts between memories: list, flag and dismiss them, and resolve them in favour of the newer memory."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import MemoryId
from souvenir.api.memories import MemoryRecord, record_fields
from souvenir.core.timestamps import utc_now
from souvenir.memories.conflicts import MAX_AT_ONCE, NEWEST_WINS, Contradiction, Resolution, Review
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, Reader, RunningService, Writer
from souvenir.server.routing import Routes

routes = Routes("conflicts")

MAX_PAGE = 500


class ConflictRecord(MemoryRecord):
    """The flagged memory and the memory that it contradicts."""

    model_config = ConfigDict(extra="allow")

    conflicts_with: int = Field(description="The id of the contradicting memory.")
    conflicting_memory: MemoryRecord
    needs_review: bool | None = Field(
        default=None, description="True if a person has to decide; `review_reason` gives the reason."
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
    conflicts: list[ConflictRecord] = Field(description="Conflicts of active memories, newest first.")
    count: int = Field(description="The number of items on this page.")
    total: int
    offset: int
    has_more: bool


class ResolveConflictsRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"dry_run": True, "max": 0}]})

    dry_run: bool = Field(default=True, description="Dry run: change nothing, and return what would change.")
    max: int = Field(
        default=0, ge=0, le=MAX_AT_ONCE, description=f"Maximum number of conflicts to resolve; 0 means {MAX_AT_ONCE}."
    )


class SettledRecord(BaseModel):
    kept: int = Field(description="The id of the newer memory.")
    archived: int
    flagger: int = Field(description="The id of the flagged memory.")


class FlagRecord(BaseModel):
    id: int
    conflicts_with: int


class ReviewRecord(FlagRecord):
    reason: Review = Field(
        description="`cross_source`: different sources; `undated`: the newer one cannot be determined; "
        "`pinned_loser`: the older one is pinned; `less_trusted`: the newer one has a less trusted "
        "`origin_class`."
    )


class ResolveConflictsResponse(BaseModel):
    success: bool
    dry_run: bool
    policy: str = Field(examples=["newest_wins"])
    resolved: list[SettledRecord]
    needs_review: list[ReviewRecord] = Field(description="Conflicts that were not resolved.")
    orphaned: list[FlagRecord] = Field(
        description="Flags that were removed because one of the two memories is already archived."
    )
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
                SettledRecord(kept=one.kept.id, archived=one.archived.id, flagger=one.flag[0]) for one in found.resolved
            ],
            needs_review=[
                ReviewRecord(id=flagger, conflicts_with=other, reason=reason)
                for (flagger, other), reason in found.needs_review
            ],
            orphaned=[FlagRecord(id=flagger, conflicts_with=other) for flagger, other in found.orphaned],
            resolved_count=len(found.resolved),
            needs_review_count=len(found.needs_review),
            orphaned_count=len(found.orphaned),
        )


@routes.get(
    "/memory/conflicts",
    summary="List conflicts",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="conflicts.list",
)
def list_conflicts(
    scope: Reader,
    service: RunningService,
    limit: Annotated[int, Query(description=f"Maximum number of items; clamped to 1 to {MAX_PAGE}.")] = 50,
    offset: Annotated[int, Query(description="Number of items to skip; negative values mean 0.")] = 0,
) -> ConflictList:
    """List memories that contradict another memory, each with that memory."""
    start = min(max(offset, 0), 2**31)
    found, total = service.maintenance.conflicts.page(scope, limit=min(max(limit, 1), MAX_PAGE), offset=start)
    records = [ConflictRecord.of_both(one) for one in found]
    return ConflictList(
        conflicts=records,
        count=len(records),
        total=total,
        offset=start,
        has_more=start + len(records) < total,
    )


class ConflictFlagged(BaseModel):
    flagged: bool = Field(description="True if the two were not flagged before.")


class ConflictDismissed(BaseModel):
    dismissed: bool = Field(description="True if the two were flagged.")


_Target = Annotated[MemoryId, Path(description="The other memory.", examples=[2])]
_PAIR = "/memory/{memory_id}/conflict/{target_id}"


@routes.put(_PAIR, summary="Flag a conflict", cost=CostClass.LIGHT, sdk="conflicts.flag", errors=[400, 404, 409])
def flag_conflict(memory_id: MemoryId, target_id: _Target, scope: Writer, service: RunningService) -> ConflictFlagged:
    """Flag two active memories as contradicting each other, for a person or a rule to decide."""
    return ConflictFlagged(flagged=service.maintenance.conflicts.flag(scope, memory_id, target_id))


@routes.delete(_PAIR, summary="Dismiss a conflict", cost=CostClass.LIGHT, sdk="conflicts.dismiss", errors=[404])
def dismiss_conflict(
    memory_id: MemoryId, target_id: _Target, scope: Writer, service: RunningService
) -> ConflictDismissed:
    """Remove the flag between two memories because both hold; neither memory changes."""
    return ConflictDismissed(dismissed=service.maintenance.conflicts.dismiss(scope, memory_id, target_id))


@routes.post(
    "/memory/conflicts/resolve",
    summary="Resolve conflicts",
    cost=CostClass.LONG,
    sdk="conflicts.resolve",
)
def resolve_conflicts(
    body: ResolveConflictsRequest, scope: Writer, service: RunningService
) -> ResolveConflictsResponse:
    """Archive the older of two contradicting memories wherever a rule decides between them."""
    found = service.maintenance.conflicts.resolve(scope, dry_run=body.dry_run, limit=body.max or None)
    return ResolveConflictsResponse.of(found, dry_run=body.dry_run)
