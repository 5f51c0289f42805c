"""What a Locrit, which is an agent, remembers: summaries, sessions, messages, concepts and memories in its words."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, access_of, locrit_scope
from souvenir.api.concept_models import ConceptName
from souvenir.api.conversation_fields import MessageId, SessionId
from souvenir.api.errors import error_responses
from souvenir.api.json_route import router
from souvenir.api.locrit_models import (
    LocritConcept,
    LocritConceptDetails,
    LocritConcepts,
    LocritHistory,
    LocritMemories,
    LocritMemory,
    LocritMessage,
    LocritMessageAnswer,
    LocritRelated,
    LocritRelatedConcepts,
    LocritSession,
    LocritSessionAnswer,
    LocritSessions,
    LocritStatistics,
    LocritStats,
    LocritSummary,
)
from souvenir.api.pages import Limit, Offset
from souvenir.api.summary_models import summary_of
from souvenir.graph.related import MAX_DEPTH
from souvenir.store.sessions import SessionFilter
from souvenir.types import Listing

routes = router("locrits")

MAX_HISTORY = 500
SHOWN_RELATED = 20

ConceptsLimit = Annotated[int, Query(ge=1, le=1000, description="Concepts wanted.")]
HistoryLimit = Annotated[int, Query(ge=1, le=MAX_HISTORY, description="Messages wanted, the latest.")]
Depth = Annotated[int, Query(ge=1, le=MAX_DEPTH, description="Steps at most.")]


@routes.get(
    "/api/locrits/{agent_name}/memory/summary", summary="Summarise a Locrit's memory", responses=error_responses(404)
)
def locrit_summary(agent_name: AgentName, _: Reader, service: RunningService, request: Request) -> LocritSummary:
    """Say how much a Locrit has, what was said last, and which concepts tell most of it."""
    return LocritSummary.of(agent_name, summary_of(service, locrit_scope(request, agent_name)))


@routes.get("/api/locrits/{agent_name}/memory/stats", summary="Count a Locrit's memory", responses=error_responses(404))
def locrit_stats(agent_name: AgentName, _: Reader, service: RunningService, request: Request) -> LocritStats:
    """Say how much a Locrit has."""
    scope = locrit_scope(request, agent_name)
    statistics = LocritStatistics.of(service.agents.stats(scope), service.graph.concepts.counts(scope))
    full = access_of(request).full_memory
    return LocritStats(locrit_name=agent_name, statistics=statistics, access_level="full" if full else "quick")


@routes.get(
    "/api/locrits/{agent_name}/memory/sessions", summary="List a Locrit's sessions", responses=error_responses(404)
)
def locrit_sessions(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    offset: Offset = 0,
    limit: Limit = 100,
) -> LocritSessions:
    """List a Locrit's sessions, newest first."""
    found, total = service.sessions.page(locrit_scope(request, agent_name), SessionFilter(), offset=offset, limit=limit)
    return LocritSessions(sessions=[LocritSession.of(one) for one in found], total=total)


@routes.get(
    "/api/locrits/{agent_name}/memory/sessions/{session_id}",
    summary="Get a Locrit's session",
    responses=error_responses(404),
)
def locrit_session(
    agent_name: AgentName, session_id: SessionId, _: Reader, service: RunningService, request: Request
) -> LocritSessionAnswer:
    """Get a session by its id."""
    return LocritSessionAnswer(
        session=LocritSession.of(service.sessions.get(locrit_scope(request, agent_name), session_id))
    )


@routes.get(
    "/api/locrits/{agent_name}/memory/sessions/{session_id}/messages",
    summary="Get the history of a Locrit's session",
    responses=error_responses(404),
)
def locrit_history(
    agent_name: AgentName,
    session_id: SessionId,
    _: Reader,
    service: RunningService,
    request: Request,
    limit: HistoryLimit = 100,
) -> LocritHistory:
    """List the latest messages of a session in the order in which they came."""
    scope = locrit_scope(request, agent_name)
    skipped = max(0, service.sessions.get(scope, session_id).messages - limit)
    found, total = service.conversations.of_session(scope, session_id, offset=skipped, limit=limit)
    return LocritHistory(session_id=session_id, messages=[LocritMessage.of(one) for one in found], total=total)


@routes.get(
    "/api/locrits/{agent_name}/memory/messages/{message_id}",
    summary="Get a Locrit's message",
    responses=error_responses(404),
)
def locrit_message(
    agent_name: AgentName, message_id: MessageId, _: Reader, service: RunningService, request: Request
) -> LocritMessageAnswer:
    """Get a message by its id."""
    message = service.conversations.get(locrit_scope(request, agent_name), message_id)
    return LocritMessageAnswer(message=LocritMessage.of(message))


@routes.get(
    "/api/locrits/{agent_name}/memory/concepts", summary="List a Locrit's concepts", responses=error_responses(404)
)
def locrit_concepts(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    offset: Offset = 0,
    limit: ConceptsLimit = 20,
) -> LocritConcepts:
    """List what a Locrit's messages and memories mention, those first that tell most of it."""
    found, total = service.graph.concepts.page(locrit_scope(request, agent_name), offset=offset, limit=limit)
    return LocritConcepts(concepts=[LocritConcept.of(one) for one in found], total=total)


@routes.get(
    "/api/locrits/{agent_name}/memory/concepts/details",
    summary="Get a Locrit's concept",
    responses=error_responses(404),
)
def locrit_concept(
    agent_name: AgentName,
    name: Annotated[ConceptName, Query()],
    _: Reader,
    service: RunningService,
    request: Request,
) -> LocritConceptDetails:
    """Get the concept that is called so, however the name is written, with where it is mentioned."""
    scope, concepts = locrit_scope(request, agent_name), service.graph.concepts
    details = concepts.details(scope, name)
    related = concepts.related(scope, details.concept.id, depth=1, limit=SHOWN_RELATED)[1]
    return LocritConceptDetails.of_details(details, related)


@routes.get(
    "/api/locrits/{agent_name}/memory/concepts/{concept_name:path}/related",
    summary="List what is related to a Locrit's concept",
    responses=error_responses(404),
)
def locrit_related(
    agent_name: AgentName,
    concept_name: ConceptName,
    _: Reader,
    service: RunningService,
    request: Request,
    depth: Depth = 2,
) -> LocritRelatedConcepts:
    """List the concepts to which the strongest paths lead from the one that is called so."""
    scope = locrit_scope(request, agent_name)
    found = service.graph.concepts.related(scope, concept_name, depth=depth, limit=SHOWN_RELATED)[1]
    related = [LocritRelated.of(one) for one in found]
    return LocritRelatedConcepts(concept=concept_name, related_concepts=related, total=len(related), depth=depth)


@routes.get(
    "/api/locrits/{agent_name}/memory/memories", summary="List a Locrit's memories", responses=error_responses(404)
)
def locrit_memories(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    offset: Offset = 0,
    limit: Limit = 100,
) -> LocritMemories:
    """List what a Locrit remembers beside what was said, newest first."""
    scope = locrit_scope(request, agent_name)
    service.agents.get(scope)
    page = service.engine.page(scope, Listing(archived=False, newest_first=True), offset=offset, limit=limit)
    return LocritMemories(memories=[LocritMemory.of(one) for one in page.memories], total=page.total)
