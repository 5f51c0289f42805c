"""Routes of Mem0 that change and delete memories, one by one, in batches and by filter."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query, Request

from souvenir.compat.mem0.agents import located, parts_of
from souvenir.compat.mem0.deleting import delete_part
from souvenir.compat.mem0.models import (
    BatchDelete,
    BatchUpdate,
    Mem0Done,
    Mem0Memory,
    UpdateMem0,
)
from souvenir.compat.mem0.routes import Mem0Id, Mem0Routes
from souvenir.compat.mem0.stored import AGENT_ID, EXPIRATION, shown_metadata, stored_metadata, stored_name
from souvenir.core.errors import InvalidFilter, InvalidRequest, MemoryPinned, NothingToDo
from souvenir.core.labels import ENTITIES
from souvenir.core.types import Memory, MemoryPatch, Role, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import RunningService, Writer
from souvenir.store.memories.reads import SUPERSEDES
from souvenir.store.transaction import Transaction

routes = Mem0Routes("mem0")

MAX_FILTERS_CHARS = 10_000
_QUERY_NAMES = frozenset({*ENTITIES, AGENT_ID, "filters"})


@routes.put("/v1/memories/{memory_id}/", cost=CostClass.WRITE)
def update(memory_id: Mem0Id, body: UpdateMem0, scope: Writer, service: RunningService, request: Request) -> Mem0Memory:
    """Change the text, metadata, time or expiration date of a memory."""
    own, number = located(request, scope, memory_id, Role.READ_WRITE)
    [after] = _updated(service.engine, own, [number], [body])
    return Mem0Memory.of(own.namespace, after)


@routes.delete("/v1/memories/{memory_id}/", cost=CostClass.WRITE)
def delete(
    memory_id: Mem0Id,
    scope: Writer,
    service: RunningService,
    request: Request,
    delete_linked: Annotated[bool, Query()] = False,
) -> Mem0Done:
    """Delete a memory permanently, unless it is pinned; with `delete_linked` also those that it superseded."""
    own, number = located(request, scope, memory_id, Role.READ_WRITE)
    _delete(service.engine, own, _superseded(service.engine, own, number) if delete_linked else [number])
    return Mem0Done(message="Memory deleted successfully!")


@routes.put("/v1/batch/", cost=CostClass.LONG)
def update_batch(body: BatchUpdate, scope: Writer, service: RunningService, request: Request) -> Mem0Done:
    """Change several memories of one agent; if one does not exist, none is changed."""
    found = [located(request, scope, one.memory_id, Role.READ_WRITE) for one in body.memories]
    own = _only_agent([one for one, _ in found])
    if len(dict.fromkeys(found)) < len(found):
        raise InvalidRequest("A batch changes each memory once; merge the changes of a memory into one")
    _updated(service.engine, own, [number for _, number in found], body.memories)
    return Mem0Done(message=f"Successfully updated {len(found)} memories")


@routes.delete("/v1/batch/", cost=CostClass.LONG)
def delete_batch(body: BatchDelete, scope: Writer, service: RunningService, request: Request) -> Mem0Done:
    """Delete several memories of one agent; if one does not exist or is pinned, none is deleted."""
    found = [located(request, scope, one.memory_id, Role.READ_WRITE) for one in body.memories]
    own = _only_agent([one for one, _ in found])
    _delete(service.engine, own, list(dict.fromkeys(number for _, number in found)))
    return Mem0Done(message=f"Successfully deleted {len(found)} memories")


@routes.delete("/v1/memories/", cost=CostClass.LONG)
def delete_all(scope: Writer, service: RunningService, request: Request) -> Mem0Done:
    """Delete every memory that the filter selects, archived and expired ones too, except pinned ones.

    Extractions that would store memories which the filter selects end.
    """
    filters = _query_filter(request)
    parts = parts_of(request, scope, filters, Role.READ_WRITE, must_test=True)
    outcomes = [delete_part(service, part) for part in parts]
    pinned = sum(len(one.skipped_pinned) for one in outcomes)
    kept = f"; {pinned} pinned ones are kept" if pinned else ""
    return Mem0Done(message=f"Memories deleted successfully!{kept}")


def _query_filter(request: Request) -> dict[str, Any]:
    """Return the filter of a query: entities by name, and `filters` as the client writes it there.

    The client puts an object into a query as Python writes it; JSON is read as well.

    :raises InvalidFilter: If something else is in the query.
    """
    query = request.query_params
    if unknown := sorted(set(query) - _QUERY_NAMES):
        raise InvalidFilter(f"The query parameter {unknown[0][:100]!r} is unknown; use filters")
    members: list[dict[str, Any]] = [{name: query[name]} for name in query if name != "filters"]
    if "filters" in query:
        members.append(_read_filters(query["filters"]))
    return {"AND": members}


def _read_filters(text: str) -> dict[str, Any]:
    try:
        if len(text) > MAX_FILTERS_CHARS:
            raise ValueError("too long")
        read = json.loads(text) if text.startswith('{"') else ast.literal_eval(text)
        if not isinstance(read, dict) or not _is_json(read):
            raise ValueError("not an object of JSON")
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise InvalidFilter(
            f"filters takes a JSON object of at most {MAX_FILTERS_CHARS} characters, such as {{'user_id': 'alice'}}"
        ) from error
    return read


def _is_json(value: Any) -> bool:
    """Return whether a value has texts as names, and lists, finite numbers and texts that Unicode has as values.

    :raises ValueError: If a number is not finite, or a text no Unicode.
    :raises TypeError: If it holds anything else than objects, lists, texts, numbers, booleans and null.
    """
    written = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return bool(json.loads(written) == value)


def _only_agent(scopes: Sequence[Scope]) -> Scope:
    """:raises InvalidFilter: If they are of several agents, since a batch is one transaction of one agent."""
    [first, *others] = dict.fromkeys(scopes)
    if others:
        raise InvalidFilter("A batch takes memories of one agent; send one batch for each")
    return first


def _updated(engine: MemoryEngine, scope: Scope, ids: Sequence[int], changes: Sequence[UpdateMem0]) -> list[Memory]:
    """Change memories in one transaction; return them as they are then.

    :raises NothingToDo: If a change is empty. :raises MemoryNotFound: If one does not exist.
    """
    present = [engine.memory(scope, id_) for id_ in ids]
    patches = [engine.screening.patch(scope, _patch(*pair)) for pair in zip(present, changes, strict=True)]
    prepared = engine.prepare_patches(patches, present)

    def work(tx: Transaction) -> list[Memory]:
        for id_, patch, passages in zip(ids, patches, prepared, strict=True):
            tx.update(id_, patch, passages)
        return [tx.memory(id_) for id_ in ids]

    return engine.write(scope, work)


def _patch(present: Memory, change: UpdateMem0) -> MemoryPatch:
    """Metadata replaces what a caller set before; an expiration date of null removes it."""
    metadata: dict[str, Any] = {}
    if change.metadata is not None:
        metadata = {stored_name(name): None for name in shown_metadata(present.metadata)}
        metadata |= stored_metadata(change.metadata)
    if EXPIRATION in change.model_fields_set:
        metadata[EXPIRATION] = change.expiration_date
    patch = MemoryPatch(text=change.text, document_at=change.timestamp, metadata=metadata or None)
    if patch == MemoryPatch() and change.metadata is None:
        raise NothingToDo("Nothing to update; give text, metadata, timestamp or expiration_date")
    return patch


def _delete(engine: MemoryEngine, scope: Scope, ids: Sequence[int]) -> None:
    """Delete all of the memories or none.

    :raises MemoryNotFound: If one does not exist. :raises MemoryPinned: If one is pinned.
    """
    if len(ids) == 1:
        engine.delete(scope, ids[0])
        return

    def work(tx: Transaction) -> None:
        for id_ in ids:
            if tx.memory(id_).pinned:
                raise MemoryPinned(id_, "unpin it before deleting it")
        tx.delete(ids)

    engine.write(scope, work)


def _superseded(engine: MemoryEngine, scope: Scope, memory_id: int) -> list[int]:
    """Return the memory and those that it superseded, and those that these did."""
    chain: dict[int, None] = {}
    rest = [engine.memory(scope, memory_id)]
    while rest:
        chain |= dict.fromkeys(memory.id for memory in rest)
        older = {link.to_id for memory in rest for link in memory.links if link.type == SUPERSEDES} - chain.keys()
        rest = list(engine.get(scope, sorted(older)).values())
    return list(chain)
