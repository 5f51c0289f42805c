"""Storing and changing memories: add, upsert, patch."""

from __future__ import annotations

from souvenir.api.caller import Engine, Writer
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
from souvenir.types import OnDuplicate

routes = router("write")


@routes.post("/memory/add", summary="Store a memory", responses=error_responses(409))
def add_memory(body: AddMemoryRequest, scope: Writer, engine: Engine, once: MakeOnce) -> AddMemoryResponse:
    """Store one memory; once it is answered it can be found, now and after a power cut."""
    on_duplicate = OnDuplicate.SKIP if body.deduplicate and body.on_duplicate is None else body.on_duplicate
    return AddMemoryResponse.of(body, engine.add(scope, body.draft(), on_duplicate=on_duplicate, once=once))


@routes.post("/memory/add-batch", summary="Store many memories", responses=error_responses(409))
def add_batch(body: AddBatchRequest, scope: Writer, engine: Engine, once: MakeOnce) -> AddBatchResponse:
    """Store up to 500 memories in one transaction: all or none; they are not compared with each other."""
    drafts = [item.draft() for item in body.memories]
    ids = engine.add_batch(scope, drafts, deduplicate=body.deduplicate, once=once)
    return AddBatchResponse(success=True, ids=list(ids), count=len(ids), message=f"Added {len(ids)} memories")


@routes.post("/memory/upsert", summary="Store or change a memory by its key", responses=error_responses(409))
def upsert_memory(body: UpsertMemoryRequest, scope: Writer, engine: Engine) -> UpsertResponse:
    """Change the memory that has this source and key, or store a new one."""
    [outcome] = engine.upsert(scope, [body.draft()])
    return UpsertResponse.of(outcome)


@routes.post("/memory/upsert-batch", summary="Store or change many memories", responses=error_responses(409))
def upsert_batch(body: UpsertBatchRequest, scope: Writer, engine: Engine) -> UpsertBatchResponse:
    """Upsert up to 1000 memories in one transaction: all or none."""
    outcomes = engine.upsert(scope, [item.draft() for item in body.memories])
    created = sum(outcome.created for outcome in outcomes)
    results = [UpsertResponse.of(outcome) for outcome in outcomes]
    return UpsertBatchResponse(success=True, created=created, updated=len(results) - created, errors=0, results=results)


@routes.patch("/memory/{memory_id}", summary="Change fields of a memory", responses=error_responses(400, 404, 409))
def patch_memory(memory_id: MemoryId, body: PatchMemoryRequest, scope: Writer, engine: Engine) -> PatchMemoryResponse:
    """Change the fields that are given and leave the others as they are."""
    patch = body.patch()
    engine.patch(scope, memory_id, patch)
    return PatchMemoryResponse.of(memory_id, patch)
