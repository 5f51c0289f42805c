"""Routes of Locrits that read summaries, sessions, messages, concepts and memories."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from souvenir.api.agent_summary import RECENT, TOP_CONCEPTS
from souvenir.api.concepts import ConceptName
from souvenir.api.fields import MessageId, SessionId
from souvenir.api.parameters import Limit, Offset
from souvenir.compat.locrit.models import (
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
from souvenir.compat.locrit.parameters import LocritReader
from souvenir.core.types import Listing
from souvenir.knowledge.related import MAX_DEPTH
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, SAID, SEARCHING, RunningService, access_of
from souvenir.server.routing import Routes
from souvenir.store.messages.sessions import SessionFilter

routes = Routes("locrits")

MAX_HISTORY = 500
SHOWN_RELATED = 20

ConceptsLimit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of concepts.")]
HistoryLimit = Annotated[
    int, Query(ge=1, le=MAX_HISTORY, description="Maximum number of messages; the latest are returned.")
]
Depth = Annotated[int, Query(ge=1, le=MAX_DEPTH, description="Maximum number of steps.")]


@routes.get(
    "/api/locrits/{agent_name}/memory/summary",
    summary="Get a Locrit's summary",
    cost=CostClass.SEARCH,
    sdk="locrits.summary",
    errors=[404],
)
def locrit_summary(scope: LocritReader, service: RunningService) -> LocritSummary:
    """Get a Locrit's statistics, its recent messages and sessions, and its most characteristic concepts."""
    graph = service.graph
    sessions, _ = service.sessions.page(scope, SessionFilter(), limit=RECENT)
    concepts, _ = graph.concepts.page(scope, limit=TOP_CONCEPTS)
    return LocritSummary(
        locrit_name=scope.namespace,
        statistics=LocritStatistics.of(service.agents.stats(scope), graph.concepts.counts(scope)),
        recent_messages=[LocritMessage.of(one) for one in service.conversations.newest(scope, limit=RECENT)],
        recent_sessions=[LocritSession.of(one) for one in sessions],
        top_concepts=[LocritConcept.of(one) for one in concepts],
        memory_insights=[one.text for one in graph.insights.of_agent(scope)],
    )


@routes.get(
    "/api/locrits/{agent_name}/memory/stats",
    summary="Get a Locrit's statistics",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="locrits.stats",
    errors=[404],
)
def locrit_stats(scope: LocritReader, service: RunningService, request: Request) -> LocritStats:
    """Count a Locrit's messages, sessions, users, memories and concepts."""
    statistics = LocritStatistics.of(service.agents.stats(scope), service.graph.concepts.counts(scope))
    full = access_of(request).full_memory
    return LocritStats(locrit_name=scope.namespace, statistics=statistics, access_level="full" if full else "quick")


@routes.get(
    "/api/locrits/{agent_name}/memory/sessions",
    summary="List a Locrit's sessions",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="locrits.sessions",
    errors=[404],
)
def locrit_sessions(
    scope: LocritReader, service: RunningService, offset: Offset = 0, limit: Limit = 100
) -> LocritSessions:
    """List a Locrit's sessions, newest first."""
    found, total = service.sessions.page(scope, SessionFilter(), offset=offset, limit=limit)
    return LocritSessions(sessions=[LocritSession.of(one) for one in found], total=total)


@routes.get(
    "/api/locrits/{agent_name}/memory/sessions/{session_id}",
    summary="Get a Locrit's session",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="locrits.session",
    errors=[404],
)
def locrit_session(session_id: SessionId, scope: LocritReader, service: RunningService) -> LocritSessionAnswer:
    """Get a session by its id."""
    return LocritSessionAnswer(session=LocritSession.of(service.sessions.get(scope, session_id)))


@routes.get(
    "/api/locrits/{agent_name}/memory/sessions/{session_id}/messages",
    summary="Get the messages of a Locrit's session",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="locrits.history",
    errors=[404],
)
def locrit_history(
    session_id: SessionId, scope: LocritReader, service: RunningService, limit: HistoryLimit = 100
) -> LocritHistory:
    """List the latest messages of a session in chronological order."""
    skipped = max(0, service.sessions.get(scope, session_id).messages - limit)
    found, total = service.conversations.of_session(scope, session_id, offset=skipped, limit=limit)
    return LocritHistory(session_id=session_id, messages=[LocritMessage.of(one) for one in found], total=total)


@routes.get(
    "/api/locrits/{agent_name}/memory/messages/{message_id}",
    summary="Get a Locrit's message",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="locrits.message",
    errors=[404],
)
def locrit_message(message_id: MessageId, scope: LocritReader, service: RunningService) -> LocritMessageAnswer:
    """Get a message by its id."""
    message = service.conversations.get(scope, message_id)
    return LocritMessageAnswer(message=LocritMessage.of(message))


@routes.get(
    "/api/locrits/{agent_name}/memory/concepts",
    summary="List a Locrit's concepts",
    cost=CostClass.SEARCH,
    access=REMEMBERED,
    sdk="locrits.concepts",
    errors=[404],
)
def locrit_concepts(
    scope: LocritReader, service: RunningService, offset: Offset = 0, limit: ConceptsLimit = 20
) -> LocritConcepts:
    """List the concepts that a Locrit's messages and memories mention, most characteristic first."""
    found, total = service.graph.concepts.page(scope, offset=offset, limit=limit)
    return LocritConcepts(concepts=[LocritConcept.of(one) for one in found], total=total)


@routes.get(
    "/api/locrits/{agent_name}/memory/concepts/details",
    summary="Get a Locrit's concept",
    cost=CostClass.SEARCH,
    sdk="locrits.concept",
    errors=[404],
)
def locrit_concept(
    name: Annotated[ConceptName, Query()], scope: LocritReader, service: RunningService
) -> LocritConceptDetails:
    """Get a concept by its name, regardless of case and spelling variants, with its mentions."""
    concepts = service.graph.concepts
    details = concepts.details(scope, name)
    related = concepts.related(scope, details.concept.id, depth=1, limit=SHOWN_RELATED)[1]
    return LocritConceptDetails.of_details(details, related)


@routes.get(
    "/api/locrits/{agent_name}/memory/concepts/{concept_name:path}/related",
    summary="List concepts related to a Locrit's concept",
    cost=CostClass.SEARCH,
    access=REMEMBERED,
    sdk="locrits.related",
    errors=[404],
)
def locrit_related(
    concept_name: ConceptName, scope: LocritReader, service: RunningService, depth: Depth = 2
) -> LocritRelatedConcepts:
    """List the concepts with the strongest paths from the concept with this name."""
    found = service.graph.concepts.related(scope, concept_name, depth=depth, limit=SHOWN_RELATED)[1]
    related = [LocritRelated.of(one) for one in found]
    return LocritRelatedConcepts(concept=concept_name, related_concepts=related, total=len(related), depth=depth)


@routes.get(
    "/api/locrits/{agent_name}/memory/memories",
    summary="List a Locrit's memories",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="locrits.memories",
    errors=[404],
)
def locrit_memories(
    scope: LocritReader, service: RunningService, offset: Offset = 0, limit: Limit = 100
) -> LocritMemories:
    """List the memories of a Locrit, newest first."""
    service.agents.get(scope)
    page = service.engine.page(scope, Listing(archived=False, newest_first=True), offset=offset, limit=limit)
    return LocritMemories(memories=[LocritMemory.of(one) for one in page.memories], total=page.total)
