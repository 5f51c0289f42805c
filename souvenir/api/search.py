"""Searching: one query, one query explained, many queries."""

from __future__ import annotations

from dataclasses import replace

from fastapi import Request

from souvenir.api.caller import Admin, Reader, RunningService, result_limit
from souvenir.api.errors import error_responses
from souvenir.api.explain_models import ExplainResponse
from souvenir.api.json_route import router
from souvenir.api.search_models import SearchBatchRequest, SearchBatchResponse, SearchRequest, SearchResponse
from souvenir.types import Scope, SearchQuery

routes = router("search")


@routes.post("/search", summary="Search memories", responses=error_responses())
def search(body: SearchRequest, scope: Reader, service: RunningService, request: Request) -> SearchResponse:
    """Find the memories that answer a query best, by meaning and by words; all filters come before the choice."""
    return SearchResponse.of(body, service.past.search(scope, _query(body, scope, request), body.as_of))


@routes.post("/search/explain", summary="Search, and explain every score", responses=error_responses())
def explain_search(body: SearchRequest, scope: Admin, service: RunningService) -> ExplainResponse:
    """Search like `/search`, and show what each arm found and what each score is made of."""
    result = service.past.search(scope, body.to_query(scope, explain=True), body.as_of)
    ids = [item.memory_id for item in (*result.vector_candidates, *result.lexical_candidates)]
    found = service.past.shown(scope, ids, body.as_of)
    return ExplainResponse.of(body, result, found, service.settings.search_fusion)


@routes.post("/search/batch", summary="Run many searches", responses=error_responses())
def search_batch(
    body: SearchBatchRequest, scope: Reader, service: RunningService, request: Request
) -> SearchBatchResponse:
    """Run up to 200 searches in one request."""
    asked = [(query, _query(query, scope, request)) for query in body.queries]
    results = [SearchResponse.of(one, service.past.search(scope, query, one.as_of)) for one, query in asked]
    return SearchBatchResponse(results=results, count=len(results))


def _query(body: SearchRequest, scope: Scope, request: Request) -> SearchQuery:
    query = body.to_query(scope)
    return replace(query, top_k=result_limit(request, query.top_k))
