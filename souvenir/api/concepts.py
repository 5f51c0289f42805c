"""What an agent knows: its concepts, what belongs to them, and a summary of everything."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, Writer, agent_scope, require_access
from souvenir.api.concept_models import (
    ConceptDetailsRecord,
    ConceptId,
    ConceptName,
    ConceptPage,
    ConceptRecord,
    RelatedConcept,
    RelatedConcepts,
    UpdateConceptRequest,
)
from souvenir.api.errors import error_responses
from souvenir.api.json_route import router
from souvenir.api.levels import REMEMBERED
from souvenir.api.pages import Limit, Offset
from souvenir.api.summary_models import SummaryResponse, summary_of
from souvenir.graph.related import MAX_DEPTH

routes = router("concepts")

MAX_RELATED = 200

Depth = Annotated[int, Query(ge=1, le=MAX_DEPTH, description="Steps at most.")]
RelatedLimit = Annotated[int, Query(ge=1, le=MAX_RELATED, description="Concepts wanted.")]


@routes.get("/agents/{agent_name}/summary", summary="Summarise what an agent knows", responses=error_responses(404))
def agent_summary(agent_name: AgentName, _: Reader, service: RunningService, request: Request) -> SummaryResponse:
    """Say how much an agent has, what was said last, and which concepts tell most of it."""
    return SummaryResponse.of(summary_of(service, agent_scope(request, agent_name)))


@routes.get("/agents/{agent_name}/concepts", summary="List concepts", responses=error_responses(404))
def list_concepts(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    offset: Offset = 0,
    limit: Limit = 100,
) -> ConceptPage:
    """List what an agent's messages and memories mention, those first that tell most of it."""
    found, total = service.graph.concepts.page(agent_scope(request, agent_name), offset=offset, limit=limit)
    return ConceptPage(concepts=[ConceptRecord.of(one) for one in found], total=total, offset=offset, limit=limit)


@routes.get("/agents/{agent_name}/concepts/{concept_id}", summary="Get a concept", responses=error_responses(404))
def get_concept(
    agent_name: AgentName, concept_id: ConceptId, _: Reader, service: RunningService, request: Request
) -> ConceptDetailsRecord:
    """Get a concept with what it is and where it is mentioned."""
    details = service.graph.concepts.details(agent_scope(request, agent_name), concept_id)
    return ConceptDetailsRecord.of_details(details)


@routes.patch(
    "/agents/{agent_name}/concepts/{concept_id}", summary="Change a concept", responses=error_responses(400, 404, 409)
)
def update_concept(
    agent_name: AgentName,
    concept_id: ConceptId,
    body: UpdateConceptRequest,
    _: Writer,
    service: RunningService,
    request: Request,
) -> ConceptRecord:
    """Say what a concept is called and what it is, in the place of what callers said before."""
    scope = agent_scope(request, agent_name)
    require_access(request, REMEMBERED)
    changed = service.graph.concepts.update(scope, concept_id, body.patch())
    return ConceptRecord.of(changed)


@routes.delete("/agents/{agent_name}/concepts/{concept_id}", summary="Delete a concept", responses=error_responses(404))
def delete_concept(
    agent_name: AgentName, concept_id: ConceptId, _: Writer, service: RunningService, request: Request
) -> ConceptRecord:
    """Forget a concept under all of its names; texts that mention it stay, and it is not read in them again."""
    return ConceptRecord.of(service.graph.concepts.hide(agent_scope(request, agent_name), concept_id))


@routes.get(
    "/agents/{agent_name}/concepts/{concept_id}/related",
    summary="List related concepts",
    responses=error_responses(404),
)
def related_concepts(
    agent_name: AgentName,
    concept_id: ConceptId,
    _: Reader,
    service: RunningService,
    request: Request,
    depth: Depth = 2,
    limit: RelatedLimit = 50,
) -> RelatedConcepts:
    """List the concepts to which the strongest paths lead from one."""
    scope = agent_scope(request, agent_name)
    concept, found = service.graph.concepts.related(scope, concept_id, depth=depth, limit=limit)
    return RelatedConcepts.of(concept, [RelatedConcept.of(one) for one in found], depth)


@routes.get("/agents/{agent_name}/concept", summary="Find a concept by a name", responses=error_responses(404))
def find_concept(
    agent_name: AgentName,
    name: Annotated[ConceptName, Query()],
    _: Reader,
    service: RunningService,
    request: Request,
) -> ConceptDetailsRecord:
    """Get the concept that is called so, however the name is written."""
    return ConceptDetailsRecord.of_details(service.graph.concepts.details(agent_scope(request, agent_name), name))


@routes.get(
    "/agents/{agent_name}/concept/related", summary="List what is related to a name", responses=error_responses(404)
)
def related_to_name(
    agent_name: AgentName,
    name: Annotated[ConceptName, Query()],
    _: Reader,
    service: RunningService,
    request: Request,
    depth: Depth = 2,
    limit: RelatedLimit = 50,
) -> RelatedConcepts:
    """List the concepts to which the strongest paths lead from the one that is called so."""
    scope = agent_scope(request, agent_name)
    concept, found = service.graph.concepts.related(scope, name, depth=depth, limit=limit)
    return RelatedConcepts.of(concept, [RelatedConcept.of(one) for one in found], depth)
