"""Insights: how an agent is used, what belongs together in what it knows, and how that changes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, agent_scope
from souvenir.api.errors import error_responses
from souvenir.api.fields import MAX_ID, EndMoment, Moment
from souvenir.api.insight_models import ConceptHistory, InsightsRecord
from souvenir.api.json_route import router
from souvenir.graph.insights import EARLIEST, LATEST

routes = router("agents")


@routes.get("/agents/{agent_name}/insights", summary="Get an agent's insights", responses=error_responses(404))
def agent_insights(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    since: Annotated[Moment | None, Query(description="What was said from then on.")] = None,
    until: Annotated[EndMoment | None, Query(description="What was said until then.")] = None,
) -> InsightsRecord:
    """Get how an agent is used and how what it knows hangs together; the time is counted in UTC."""
    return InsightsRecord.of(service.graph.insights.of_agent(agent_scope(request, agent_name), since, until))


@routes.get(
    "/agents/{agent_name}/concepts/{concept_id}/history",
    summary="Get how a concept's neighbours changed",
    responses=error_responses(404),
)
def concept_history(
    agent_name: AgentName,
    concept_id: Annotated[int, Path(ge=0, le=MAX_ID, description="The id of a concept.")],
    _: Reader,
    service: RunningService,
    request: Request,
    since: Annotated[Moment | None, Query(description="From its month on.")] = None,
    until: Annotated[EndMoment | None, Query(description="Until its month, which is included.")] = None,
    split: Annotated[Moment | None, Query(description="Compared is what was before its month with the rest.")] = None,
) -> ConceptHistory:
    """Get what was mentioned with a concept in each month, and what changed since the middle one, or since `split`."""
    scope = agent_scope(request, agent_name)
    found = service.graph.neighbourhoods.history(scope, concept_id, since or EARLIEST, until or LATEST, split)
    return ConceptHistory.of(found)
