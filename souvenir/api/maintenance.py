"""Maintenance: compaction, consolidation, pruning, retention policies, re-embedding and index checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from fastapi import Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import Clean, OptionalSource
from souvenir.core.timestamps import utc_now
from souvenir.core.types import JsonObject, Memory
from souvenir.jobs.handler import AtOnce
from souvenir.memories.consolidation import NotMerged
from souvenir.memories.deduplication import CLUSTERS_SHOWN, MEMBERS_SHOWN, NEAR_SIMILARITY, Compaction
from souvenir.memories.reembedding import Reembedding
from souvenir.memories.retention import ACTIONS_SHOWN, PolicyEnforcement, PolicyRule, Pruning
from souvenir.models.embedding.specs import ModelSpec
from souvenir.server.job_responses import ACCEPTED, DEFAULT_WAIT_S, JOB_ABOVE_MEMORIES, WaitS
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Admin, RunningService
from souvenir.server.routing import Routes

routes = Routes("maintenance")

TEXT_SHOWN_CHARS = 500

PRUNED_AFTER_DAYS = 90
"""Without another number of days; longer than an extraction can be undone."""

DryRun = Annotated[bool, Query(description="Dry run: change nothing, and return what would change.")]


class CompactRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"threshold": 0.85}]})

    threshold: float = Field(
        default=NEAR_SIMILARITY,
        ge=0.5,
        le=1.0,
        description="The minimum cosine similarity of similar memories of one source.",
    )


class NearMemory(BaseModel):
    id: int
    text: str = Field(description=f"The first {TEXT_SHOWN_CHARS} characters of the text.")


class ClusterRecord(BaseModel):
    source: str
    count: int = Field(description="The number of memories.")
    similarity: float = Field(description="The lowest cosine similarity to the first memory.")
    memories: list[NearMemory] = Field(description=f"The first {MEMBERS_SHOWN}.")


class CompactResponse(BaseModel):
    threshold: float
    cluster_count: int
    memory_count: int = Field(description="The number of memories in all clusters.")
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


class MergedRecord(BaseModel):
    id: int | None = Field(description="The id of the new memory; null for a dry run.")
    source: str
    ids: list[int] = Field(description="The ids of the memories that it supersedes.")
    text: str


class SkippedRecord(BaseModel):
    ids: list[int]
    reason: NotMerged = Field(
        description="`declined`: the model considers them different; `longer`, `numbers_differ`: its text is "
        "longer than theirs together, or has other numbers; `unusable`: its answer is invalid; "
        "`too_long`: they are too long; `changed`: one was changed meanwhile."
    )


class ConsolidateResponse(BaseModel):
    dry_run: bool
    merged: list[MergedRecord]
    merged_count: int
    archived_count: int = Field(description="The number of memories that were superseded.")
    skipped: list[SkippedRecord] = Field(description="Clusters that were not changed.")
    has_more: bool = Field(description="True if there are clusters that were not processed.")

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
    candidates: int = Field(description="The number of archived memories that were not changed within the period.")
    pruned: int = Field(description="The number of memories that were deleted permanently.")
    dry_run: bool


class PolicyAction(BaseModel):
    memory_id: int
    rule: PolicyRule
    source_prefix: str = Field(description="The prefix of the profile.", examples=["wip/"])
    measured: float = Field(description="The days since its last change, or its confidence.")
    limit: float = Field(description="`ttl_days`, or `confidence_threshold`.")


class PolicyCounts(BaseModel):
    ttl: int
    confidence: int


class PolicySummary(BaseModel):
    candidates_scanned: int = Field(description="The number of active memories of sources with a policy.")
    would_archive: int | None = Field(default=None, description="Set for a dry run.")
    archived: int | None = Field(default=None, description="Set if it is not a dry run.")
    by_rule: PolicyCounts
    excluded_pinned: int = Field(description="Memories that a rule matches but that are pinned.")
    excluded_young: int = Field(description="Memories with too low a confidence that are younger than `min_age_days`.")


class PolicyResponse(BaseModel):
    dry_run: bool
    actions: list[PolicyAction] = Field(description=f"The first {ACTIONS_SHOWN}.")
    summary: PolicySummary


@routes.post(
    "/maintenance/compact",
    summary="List clusters of similar memories",
    cost=CostClass.LONG,
    sdk="maintenance.compact",
    response_model=CompactResponse,
    errors=[409],
    responses=ACCEPTED,
)
def compact(
    scope: Admin, service: RunningService, body: CompactRequest | None = None, wait_s: WaitS = DEFAULT_WAIT_S
) -> CompactResponse | JSONResponse:
    """List the clusters of nearly identical memories within each source, without changing anything."""
    threshold = (body or CompactRequest()).threshold
    if service.engine.count(scope) > JOB_ABOVE_MEMORIES:
        result = service.long_work.run(Compaction.kind, scope, {"threshold": threshold}, wait_s=wait_s)
    else:
        result = service.maintenance.compaction.survey(scope, threshold=threshold, progress=AtOnce({}))
    if isinstance(result, JSONResponse):
        return result
    shown = [id_ for cluster in result["shown"] for id_ in cluster["ids"]]
    return CompactResponse.of(threshold, result, service.engine.get(scope, shown))


@routes.post(
    "/maintenance/consolidate",
    summary="Merge similar memories",
    cost=CostClass.LONG,
    sdk="maintenance.consolidate",
    response_model=ConsolidateResponse,
    errors=[409],
    responses=ACCEPTED,
)
def consolidate(
    scope: Admin,
    service: RunningService,
    dry_run: DryRun = True,
    source_prefix: Annotated[
        OptionalSource, Query(description="Only memories whose source starts with this prefix.")
    ] = "",
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> ConsolidateResponse | JSONResponse:
    """Let the language model merge nearly identical memories of one source into one text."""
    consolidation, parameters = service.maintenance.consolidation, {"source_prefix": source_prefix}
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
    summary="Delete old archived memories",
    cost=CostClass.LONG,
    sdk="maintenance.prune",
    response_model=PruneResponse,
    errors=[409],
    responses=ACCEPTED,
)
def prune(
    scope: Admin,
    service: RunningService,
    dry_run: DryRun = True,
    older_than_days: Annotated[
        int, Query(ge=1, le=36_500, description="Days since the last change, which includes archiving.")
    ] = PRUNED_AFTER_DAYS,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> PruneResponse | JSONResponse:
    """Delete memories archived longer than the retention period; pinned ones are kept, and a backup is made first."""
    before = utc_now() - timedelta(days=older_than_days)
    if dry_run:
        return PruneResponse(candidates=service.maintenance.pruning.candidates(scope, before), pruned=0, dry_run=True)
    result = service.long_work.run(Pruning.kind, scope, {"before": before.isoformat()}, wait_s=wait_s)
    return result if isinstance(result, JSONResponse) else PruneResponse(**result, dry_run=False)


@routes.post(
    "/maintenance/enforce-policies",
    summary="Enforce retention policies",
    cost=CostClass.LONG,
    sdk="maintenance.enforce_policies",
    response_model=PolicyResponse,
    errors=[409],
    responses=ACCEPTED,
)
def enforce_policies(
    scope: Admin, service: RunningService, dry_run: DryRun = True, wait_s: WaitS = DEFAULT_WAIT_S
) -> PolicyResponse | JSONResponse:
    """Archive memories that exceed the maximum age or fall below the minimum confidence of their extraction profile."""
    at, kind = utc_now(), PolicyEnforcement.kind
    result = (
        service.maintenance.policies.enforce(scope, at=at, dry_run=True, progress=AtOnce({}))
        if dry_run
        else service.long_work.run(kind, scope, {"at": at.isoformat()}, wait_s=wait_s)
    )
    return result if isinstance(result, JSONResponse) else PolicyResponse.model_validate(result)


class ReembedRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "models/all-MiniLM-L6-v2"}]})

    model: Annotated[str, StringConstraints(min_length=1, max_length=500), Clean] | None = Field(
        default=None, description="A model of the provider EMBED_PROVIDER; EMBED_MODEL by default."
    )

    def spec(self, named: ModelSpec) -> ModelSpec:
        """:param named: The model of the settings."""
        return named if self.model in (None, named.model) else replace(named, model=self.model, revision=None)


class ReembedResponse(BaseModel):
    model: str = Field(description="The id of the model that is now in use.")
    embedded: int = Field(description="The number of passages that it embedded.")
    already_serving: bool = Field(description="True if it was already in use, so that nothing had to be embedded.")


class ReloadResponse(BaseModel):
    success: bool
    model: str = Field(description="The id of the model.")


@routes.post(
    "/maintenance/reembed",
    summary="Change the embedding model",
    cost=CostClass.LONG,
    sdk="maintenance.reembed",
    response_model=ReembedResponse,
    errors=[409],
    responses=ACCEPTED,
)
def reembed(
    scope: Admin, service: RunningService, body: ReembedRequest | None = None, wait_s: WaitS = DEFAULT_WAIT_S
) -> ReembedResponse | JSONResponse:
    """Embed all passages of all namespaces with another model, then switch to it; searches continue meanwhile."""
    spec = (body or ReembedRequest()).spec(ModelSpec.of(service.settings))
    result = service.reembedding_work.run(Reembedding.kind, scope, {"spec": spec.to_json()}, wait_s=wait_s)
    return result if isinstance(result, JSONResponse) else ReembedResponse.model_validate(result)


@routes.post(
    "/maintenance/embedder/reload",
    summary="Reload the embedding model",
    cost=CostClass.LONG,
    sdk="maintenance.reload_embedder",
    errors=[409],
)
def reload_embedder(scope: Admin, service: RunningService) -> ReloadResponse:
    """Reload the embedding model, and use it if it is the model that made the stored vectors."""
    model = service.model.reload()
    service.audit.act(scope, "model.reload", model)
    return ReloadResponse(success=True, model=model)
