"""Routes of Mem0 that add, read and search memories."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import AfterValidator

from souvenir.compat.mem0.adding import add_messages
from souvenir.compat.mem0.agents import UNARCHIVED, Part, located, of_each_agent, parts_of, unexpired
from souvenir.compat.mem0.models import (
    AddRequest,
    ListRequest,
    Mem0Added,
    Mem0Change,
    Mem0Memory,
    Mem0Page,
    Mem0Results,
    SearchMem0,
)
from souvenir.core.types import Filters, Role, Scope, SearchQuery
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import (
    MAX_NAMESPACE_CHARS,
    REMEMBERED,
    SEARCHING,
    MakeOnce,
    Reader,
    RunningService,
    Writer,
    caller_of,
    namespace_name,
    result_limit,
)
from souvenir.server.routing import Declaration, Decorator, Routes
from souvenir.server.service import Service
from souvenir.store.memories.conditions import Condition


class Mem0Routes(Routes):
    """Routes for Mem0's own clients: not in the OpenAPI document, and the `detail` of errors is one sentence."""

    def _add(self, method: str, path: str, declared: Declaration) -> Decorator:
        return super()._add(method, path, {**declared, "include_in_schema": False, "plain_errors": True})


routes = Mem0Routes("mem0")

ORGANISATION = "souvenir"
MAX_PAGE_SIZE = 1_000
DEFAULT_PAGE_SIZE = 100

Mem0Id = Annotated[str, Path(max_length=100, description="The id of a memory.")]
ProjectId = Annotated[str, Path(max_length=MAX_NAMESPACE_CHARS), AfterValidator(namespace_name)]
"""A project is a namespace, with its name."""


@routes.get("/v1/ping/", cost=CostClass.LIGHT)
def ping(scope: Reader) -> dict[str, str | None]:
    """Say that the key is valid. The client needs ids of an organisation and a project, of which there are none."""
    return {"status": "ok", "user_email": None, "org_id": ORGANISATION, "project_id": scope.namespace}


@routes.post("/v3/memories/add/", cost=CostClass.WRITE, large_body=True)
def add(body: AddRequest, scope: Writer, service: RunningService, request: Request, once: MakeOnce) -> Mem0Added:
    """Store the messages as memories, or queue the extraction of memories from them."""
    agent = body.entity("agent_id")
    if agent is not None:
        scope = caller_of(request).scope(Role.READ_WRITE, agent)
        request.state.namespace = scope.namespace
    return add_messages(service, scope, body, once, named=agent is not None)


@routes.get("/v1/memories/{memory_id}/", cost=CostClass.LIGHT, access=REMEMBERED)
def get(memory_id: Mem0Id, scope: Reader, service: RunningService, request: Request) -> Mem0Memory:
    """Get a memory."""
    own, number = located(request, scope, memory_id, Role.READ_ONLY)
    return Mem0Memory.of(own.namespace, service.engine.memory(own, number))


@routes.get("/v1/memories/{memory_id}/history/", cost=CostClass.LIGHT, access=REMEMBERED)
def history(memory_id: Mem0Id, scope: Reader, service: RunningService, request: Request) -> list[Mem0Change]:
    """List the changes of a memory, oldest first."""
    own, number = located(request, scope, memory_id, Role.READ_ONLY)
    entries = service.engine.history(own, number).entries
    return [Mem0Change.of(number, place, entry) for place, entry in enumerate(entries)]


@routes.post("/v3/memories/", cost=CostClass.SEARCH, access=REMEMBERED, idempotent=True)
def get_all(
    body: ListRequest,
    scope: Reader,
    service: RunningService,
    request: Request,
    page: Annotated[int, Query(ge=1, le=10**6)] = 1,
    page_size: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Mem0Page:
    """List memories, the newest of an agent first."""
    members = [body.filters or {}, _given(gte=body.start_date, lte=body.end_date), _tagged(body.categories)]
    parts = parts_of(request, scope, {"AND": members}, Role.READ_ONLY, *_left_out(show_expired=body.show_expired))
    found = [(part.scope, id_) for part in parts for id_ in reversed(part.ids(service.engine))]
    shown = found[(page - 1) * page_size : page * page_size]
    return Mem0Page(
        count=len(found),
        next=_page(request, page + 1) if page * page_size < len(found) else None,
        previous=_page(request, page - 1) if page > 1 else None,
        results=_records(service, shown, body.fields),
    )


@routes.post("/v3/memories/search/", cost=CostClass.SEARCH, access=SEARCHING, idempotent=True)
def search(body: SearchMem0, scope: Reader, service: RunningService, request: Request) -> Mem0Results:
    """Find the memories that best match a query among those that the filter selects."""
    members = [body.filters or {}, _tagged(body.categories)]
    if body.metadata:
        members.append({"metadata": body.metadata})
    parts = parts_of(request, scope, {"AND": members}, Role.READ_ONLY, *_left_out(show_expired=body.show_expired))
    limit = result_limit(request, body.top_k)
    hits = [hit for part in parts for hit in _found(service, part, body, limit)]
    hits.sort(key=lambda hit: -(hit.score or 0))
    return Mem0Results(results=hits[:limit])


def _found(service: Service, part: Part, body: SearchMem0, limit: int) -> list[Mem0Memory]:
    ids = part.ids(service.engine)
    if not ids:
        return []
    query = SearchQuery(
        text=body.query,
        top_k=limit,
        min_score=body.threshold,
        now=body.reference_date,
        filters=Filters(within=tuple(ids)),
    )
    result = service.engine.search(part.scope, query)
    service.searches.note(part.scope, query, result)
    fields = None if body.fields is None else [*body.fields, "score"]
    return [Mem0Memory.of(part.scope.namespace, hit.memory, fields, score=hit.score) for hit in result.hits]


def _left_out(*, show_expired: bool) -> tuple[Condition, ...]:
    return (UNARCHIVED,) if show_expired else (UNARCHIVED, unexpired())


def _given(**bounds: str | None) -> dict[str, Any]:
    """A filter by the time of memories."""
    given = {name: value for name, value in bounds.items() if value is not None}
    return {"created_at": given} if given else {}


def _tagged(categories: list[str] | None) -> dict[str, Any]:
    return {"categories": {"in": categories}} if categories else {}


def _page(request: Request, number: int) -> str:
    return str(request.url.include_query_params(page=number))


def _records(service: Service, found: list[tuple[Scope, int]], fields: list[str] | None) -> list[Mem0Memory]:
    memories = {scope: service.engine.get(scope, ids) for scope, ids in of_each_agent(found).items()}
    return [
        Mem0Memory.of(scope.namespace, memories[scope][id_], fields) for scope, id_ in found if id_ in memories[scope]
    ]
