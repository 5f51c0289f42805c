"""What an admin does to keep a store in order: finding near memories, forgetting, archiving by policies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from fastapi import Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from souvenir.api.caller import Admin, RunningService
from souvenir.api.errors import error_responses
from souvenir.api.fields import OptionalSource
from souvenir.api.json_route import router
from souvenir.api.long_work import ACCEPTED, DEFAULT_WAIT_S, JOB_ABOVE_MEMORIES, WaitS
from souvenir.jobs.running import AtOnce
from souvenir.moments import utc_now
from souvenir.tending.compaction import CLUSTERS_SHOWN, MEMBERS_SHOWN, NEAR_SIMILARITY, Compaction
from souvenir.tending.merging import NotMerged
from souvenir.tending.policies import ACTIONS_SHOWN, PolicyEnforcement, PolicyRule
from souvenir.tending.pruning import Pruning
from souvenir.types import JsonObject, Memory

routes = router("maintenance")

TEXT_SHOWN_CHARS = 500

PRUNED_AFTER_DAYS = 90
"""Without another number of days; longer than an extraction can be undone."""

DryRun = Annotated[bool, Query(description="Change nothing, and answer what would be.")]


class CompactRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"threshold": 0.85}]})

    threshold: float = Field(
        default=NEAR_SIMILARITY, ge=0.5, le=1.0, description="Cosine from which two memories of one source are near."
    )


class NearMemory(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"id": 12, "text": "Billing runs on Postgres 17."}]})

    id: int
    text: str = Field(description=f"Its first {TEXT_SHOWN_CHARS} characters.")


_CLUSTER: JsonDict = {
    "source": "claude-code/billing",
    "count": 2,
    "similarity": 0.912034,
    "memories": [
        {"id": 12, "text": "Billing runs on Postgres 17."},
        {"id": 15, "text": "Billing uses Postgres 17 now."},
    ],
}


class ClusterRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_CLUSTER]})

    source: str
    count: int = Field(description="Memories in it.")
    similarity: float = Field(description="The least cosine to the first of them.")
    memories: list[NearMemory] = Field(description=f"The first {MEMBERS_SHOWN}.")


class CompactResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "threshold": 0.85,
                    "cluster_count": 1,
                    "memory_count": 2,
                    "clusters": [_CLUSTER],
                }
            ]
        }
    )

    threshold: float
    cluster_count: int
    memory_count: int = Field(description="Memories in all clusters.")
    clusters: list[ClusterRecord] = Field(description=f"The first {CLUSTERS_SHOWN}.")

    @classmethod
    def of(cls, threshold: float, result: JsonObject, memories: Mapping[int, Memory]) -> CompactResponse:
        """:param memories: Those that are shown, by id; one that is gone by now is left out."""
        clusters = [
            ClusterRecord(
                source=cluster["source"],
                count=cluster["count"],
                similarity=cluster["similarity"],
                memories=[
                    NearMemory(id=id_, text=memories[id_].text[:TEXT_SHOWN_CHARS])
                    for id_ in cluster["ids"]
                    if id_ in memories
                ],
            )
            for cluster in result["shown"]
        ]
        return cls(
            threshold=threshold, cluster_count=result["clusters"], memory_count=result["memories"], clusters=clusters
        )


_MERGED: JsonDict = {
    "id": 40,
    "source": "claude-code/billing",
    "ids": [12, 15],
    "text": "Billing runs on Postgres 17 now.",
}


class MergedRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_MERGED]})

    id: int | None = Field(description="Of the new memory; null after a dry run.")
    source: str
    ids: list[int] = Field(description="What it takes the place of.")
    text: str


class SkippedRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [20, 21], "reason": "declined"}]})

    ids: list[int]
    reason: NotMerged = Field(
        description="`declined`: the model says that they are not one thing; `longer`, `numbers_differ`: its text is "
        "longer than theirs together, or has other numbers; `unusable`: its answer could not be read; `too_long`: they "
        "are too long; `changed`: one was changed meanwhile."
    )


class ConsolidateResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "dry_run": True,
                    "merged": [{**_MERGED, "id": None}],
                    "merged_count": 1,
                    "archived_count": 0,
                    "skipped": [{"ids": [20, 21], "reason": "declined"}],
                    "has_more": False,
                }
            ]
        }
    )

    dry_run: bool
    merged: list[MergedRecord]
    merged_count: int
    archived_count: int = Field(description="Memories in whose place another stands now.")
    skipped: list[SkippedRecord] = Field(description="Left as they are.")
    has_more: bool = Field(description="Whether there are clusters that were not asked about.")

    @classmethod
    def of(cls, result: JsonObject, memories: Mapping[int, Memory]) -> ConsolidateResponse:
        """:param memories: The new ones, by id; one that is gone by now is left out."""
        shown = [
            MergedRecord(**({"source": memories[one["id"]].source, "text": memories[one["id"]].text} | one))
            if one["id"] is not None
            else MergedRecord(**one)
            for one in result["merged"]
            if one["id"] is None or one["id"] in memories
        ]
        return cls(
            dry_run=result["dry_run"],
            merged=shown,
            merged_count=len(result["merged"]),
            archived_count=0 if result["dry_run"] else sum(len(one["ids"]) for one in result["merged"]),
            skipped=[SkippedRecord(**one) for one in result["skipped"]],
            has_more=result["has_more"],
        )


class PruneResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"candidates": 40, "pruned": 0, "dry_run": True}]})

    candidates: int = Field(description="Archived memories that were not changed for so long.")
    pruned: int = Field(description="Those that were deleted for good.")
    dry_run: bool


class PolicyAction(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"memory_id": 12, "rule": "ttl", "source_prefix": "wip/", "measured": 41.5, "limit": 30}]
        }
    )

    memory_id: int
    rule: PolicyRule
    source_prefix: str = Field(description="Of the profile.")
    measured: float = Field(description="Days since its last change, or its confidence.")
    limit: float = Field(description="`ttl_days`, or `confidence_threshold`.")


class PolicyCounts(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ttl": 1, "confidence": 0}]})

    ttl: int
    confidence: int


class PolicySummary(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "candidates_scanned": 120,
                    "would_archive": 1,
                    "by_rule": {"ttl": 1, "confidence": 0},
                    "excluded_pinned": 2,
                    "excluded_young": 0,
                }
            ]
        }
    )

    candidates_scanned: int = Field(description="Living memories of sources that a policy is for.")
    would_archive: int | None = Field(default=None, description="After a dry run.")
    archived: int | None = Field(default=None, description="After one that is none.")
    by_rule: PolicyCounts
    excluded_pinned: int = Field(description="That a rule reaches and that stay, since they are pinned.")
    excluded_young: int = Field(description="Whose confidence is too low and that stay, for `min_age_days`.")


class PolicyResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "dry_run": True,
                    "actions": [
                        {"memory_id": 12, "rule": "ttl", "source_prefix": "wip/", "measured": 41.5, "limit": 30}
                    ],
                    "summary": {
                        "candidates_scanned": 120,
                        "would_archive": 1,
                        "by_rule": {"ttl": 1, "confidence": 0},
                        "excluded_pinned": 2,
                        "excluded_young": 0,
                    },
                }
            ]
        }
    )

    dry_run: bool
    actions: list[PolicyAction] = Field(description=f"The first {ACTIONS_SHOWN}.")
    summary: PolicySummary


@routes.post(
    "/maintenance/compact",
    summary="Find clusters of near memories",
    response_model=CompactResponse,
    responses={**error_responses(409), **ACCEPTED},
)
def compact(
    scope: Admin, service: RunningService, body: CompactRequest | None = None, wait_s: WaitS = DEFAULT_WAIT_S
) -> CompactResponse | JSONResponse:
    """Show which memories of one source say nearly the same, and change nothing."""
    threshold = (body or CompactRequest()).threshold
    if service.engine.count(scope) > JOB_ABOVE_MEMORIES:
        result = service.long_work.run(Compaction.kind, scope, {"threshold": threshold}, wait_s=wait_s)
    else:
        result = service.tending.compaction.survey(scope, threshold=threshold, progress=AtOnce({}))
    if isinstance(result, JSONResponse):
        return result
    shown = [id_ for cluster in result["shown"] for id_ in cluster["ids"]]
    return CompactResponse.of(threshold, result, service.engine.get(scope, shown))


@routes.post(
    "/maintenance/consolidate",
    summary="Merge near memories",
    response_model=ConsolidateResponse,
    responses={**error_responses(409), **ACCEPTED},
)
def consolidate(
    scope: Admin,
    service: RunningService,
    dry_run: DryRun = True,
    source_prefix: Annotated[OptionalSource, Query(description="Only of sources that begin with this.")] = "",
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> ConsolidateResponse | JSONResponse:
    """Let the language model write one text in the place of memories of one source that say nearly the same."""
    consolidation, parameters = service.tending.consolidation, {"source_prefix": source_prefix}
    if dry_run:
        return ConsolidateResponse.of(consolidation.preview(scope, **parameters), {})
    consolidation.require_model()
    result = service.consolidation_work.run(consolidation.kind, scope, parameters, wait_s=wait_s)
    if isinstance(result, JSONResponse):
        return result
    made = [one["id"] for one in result["merged"]]
    return ConsolidateResponse.of(result, service.engine.get(scope, made))


@routes.post(
    "/maintenance/prune",
    summary="Delete what is archived for long",
    response_model=PruneResponse,
    responses={**error_responses(409), **ACCEPTED},
)
def prune(
    scope: Admin,
    service: RunningService,
    dry_run: DryRun = True,
    older_than_days: Annotated[
        int, Query(ge=1, le=36_500, description="Days since the last change, the archiving included.")
    ] = PRUNED_AFTER_DAYS,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> PruneResponse | JSONResponse:
    """Delete archived memories for good that nobody changed for long; pinned ones stay, and a backup is made first."""
    before = utc_now() - timedelta(days=older_than_days)
    if dry_run:
        return PruneResponse(candidates=service.tending.pruning.candidates(scope, before), pruned=0, dry_run=True)
    result = service.long_work.run(Pruning.kind, scope, {"before": before.isoformat()}, wait_s=wait_s)
    return result if isinstance(result, JSONResponse) else PruneResponse(**result, dry_run=False)


@routes.post(
    "/maintenance/enforce-policies",
    summary="Archive what policies reach",
    response_model=PolicyResponse,
    responses={**error_responses(409), **ACCEPTED},
)
def enforce_policies(
    scope: Admin, service: RunningService, dry_run: DryRun = True, wait_s: WaitS = DEFAULT_WAIT_S
) -> PolicyResponse | JSONResponse:
    """Archive memories that are older or less sure than the extraction profile of their source allows."""
    at, kind = utc_now(), PolicyEnforcement.kind
    result = (
        service.tending.policies.enforce(scope, at=at, dry_run=True, progress=AtOnce({}))
        if dry_run
        else service.long_work.run(kind, scope, {"at": at.isoformat()}, wait_s=wait_s)
    )
    return result if isinstance(result, JSONResponse) else PolicyResponse.model_validate(result)
