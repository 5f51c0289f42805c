"""The context of an agent for what its model is about to be asked."""

from __future__ import annotations

from dataclasses import replace

from fastapi import Request

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, agent_scope, most_found
from souvenir.api.context_models import ContextRequest, ContextResponse
from souvenir.api.errors import error_responses
from souvenir.api.json_route import router

routes = router("context")


@routes.post("/context/{agent_name}", summary="Get the context for a query", responses=error_responses(404))
def build_context(
    agent_name: AgentName, body: ContextRequest, _: Reader, service: RunningService, request: Request
) -> ContextResponse:
    """Get an agent's blocks and what was said before that bears on a query, as records and as text for a prompt."""
    query = replace(body.to_query(), max_results=most_found(request))
    return ContextResponse.of(service.contexts.build(agent_scope(request, agent_name), query))
