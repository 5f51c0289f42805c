"""Searching: one query, one query explained, many queries."""

from __future__ import annotations

from fastapi import Request

from souvenir.api.caller import Admin, Engine, Reader, service_of
from souvenir.api.errors import error_responses
from souvenir.api.explain_models import ExplainResponse
from souvenir.api.json_route import router
from souvenir.api.search_models import SearchBatchRequest, SearchBatchResponse, SearchRequest, SearchResponse

routes = router("search")


@routes.post("/search", summary="Search memories", responses=error_responses())
def search(body: SearchRequest, scope: Reader, engine: Engine) -> SearchResponse:
    """Find the memories that answer a query best, by meaning and by words; all filters come before the choice."""
    return SearchResponse.of(body, engine.search(scope, body.to_query(scope)))


@routes.post("/search/explain", summary="Search, and explain every score", responses=error_responses())
def explain_search(body: SearchRequest, scope: Admin, engine: Engine, request: Request) -> ExplainResponse:
    """Search like `/search`, and show what each arm found and what each score is made of."""
    result = engine.search(scope, body.to_query(scope, explain=True))
    found = engine.get(scope, [item.memory_id for item in (*result.vector_candidates, *result.lexical_candidates)])
    return ExplainResponse.of(body, result, found, service_of(request).settings.search_fusion)


@routes.post("/search/batch", summary="Run many searches", responses=error_responses())
def search_batch(body: SearchBatchRequest, scope: Reader, engine: Engine) -> SearchBatchResponse:
    """Run up to 200 searches in one request."""
    found = engine.search_many(scope, [query.to_query(scope) for query in body.queries])
    results = [SearchResponse.of(query, result) for query, result in zip(body.queries, found, strict=True)]
    return SearchBatchResponse(results=results, count=len(results))
