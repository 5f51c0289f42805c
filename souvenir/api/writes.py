"""Storing and changing memories: add, upsert, patch."""

from __future__ import annotations

from souvenir.api.caller import RunningService, Writer
from souvenir.api.errors import error_responses
from souvenir.api.fields import MemoryId
from souvenir.api.json_route import router
from souvenir.api.once import MakeOnce
from souvenir.api.write_models import (
    AddBatchRequest,
    AddBatchResponse,
    AddMemoryRequest,
    AddMemoryResponse,
    PatchMemoryRequest,
    PatchMemoryResponse,
    UpsertBatchRequest,
    UpsertBatchResponse,
    UpsertMemoryRequest,
    UpsertResponse,
)
from souvenir.facts.facts import Wanted
from souvenir.types import OnDuplicate

routes = router("write")


@routes.post("/memory/add", summary="Store a memory", responses=error_responses(409))
def add_memory(body: AddMemoryRequest, scope: Writer, service: RunningService, once: MakeOnce) -> AddMemoryResponse:
    """Store one memory; once it is answered it can be found, now and after a power cut."""
    on_duplicate = OnDuplicate.SKIP if body.deduplicate and body.on_duplicate is None else body.on_duplicate
    added = service.facts.add(scope, body.draft(), body.wanted(), on_duplicate=on_duplicate, once=once)
    return AddMemoryResponse.of(body, added)


@routes.post("/memory/add-batch", summary="Store many memories", responses=error_responses(409))
def add_batch(body: AddBatchRequest, scope: Writer, service: RunningService, once: MakeOnce) -> AddBatchResponse:
    """Store up to 500 memories in one transaction: all or none; they are not compared with each other."""
    drafts = [(item.draft(), item.wanted()) for item in body.memories]
    ids = service.facts.add_batch(scope, drafts, deduplicate=body.deduplicate, once=once)
    return AddBatchResponse(success=True, ids=list(ids), count=len(ids), message=f"Added {len(ids)} memories")


@routes.post("/memory/upsert", summary="Store or change a memory by its key", responses=error_responses(409))
def upsert_memory(body: UpsertMemoryRequest, scope: Writer, service: RunningService) -> UpsertResponse:
    """Change the memory that has this source and key, or store a new one."""
    [outcome] = service.facts.upsert(scope, [(body.draft(), body.wanted())])
    return UpsertResponse.of(outcome)


@routes.post("/memory/upsert-batch", summary="Store or change many memories", responses=error_responses(409))
def upsert_batch(body: UpsertBatchRequest, scope: Writer, service: RunningService) -> UpsertBatchResponse:
    """Upsert up to 1000 memories in one transaction: all or none."""
    outcomes = service.facts.upsert(scope, [(item.draft(), item.wanted()) for item in body.memories])
    created = sum(outcome.created for outcome in outcomes)
    results = [UpsertResponse.of(outcome) for outcome in outcomes]
    return UpsertBatchResponse(success=True, created=created, updated=len(results) - created, errors=0, results=results)


@routes.patch("/memory/{memory_id}", summary="Change fields of a memory", responses=error_responses(400, 404, 409))
def patch_memory(
    memory_id: MemoryId, body: PatchMemoryRequest, scope: Writer, service: RunningService
) -> PatchMemoryResponse:
    """Change the fields that are given and leave the others as they are."""
    service.facts.update(scope, memory_id, body.patch(), Wanted(body.facts))
    return PatchMemoryResponse.of(memory_id, body)
