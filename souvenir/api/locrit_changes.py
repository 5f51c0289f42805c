"""What changes the memory of a Locrit, which is an agent: its messages, sessions, concepts and memories."""

from __future__ import annotations

from fastapi import Request

from souvenir.api.agents import AgentName
from souvenir.api.caller import RunningService, Writer, locrit_scope
from souvenir.api.concept_models import ConceptId
from souvenir.api.conversation_fields import MessageId, SessionId
from souvenir.api.errors import error_responses
from souvenir.api.fields import MemoryId
from souvenir.api.json_route import router
from souvenir.api.locrit_models import (
    AddLocritMemory,
    ClearLocrit,
    ConversationStored,
    EditLocritConcept,
    EditMessageContent,
    LocritDone,
    LocritMemoryAdded,
    StoreConversation,
    StoredDetails,
)
from souvenir.api.once import MakeOnce
from souvenir.conversation.retelling import add_new
from souvenir.store.selection import Chooses

routes = router("locrits")


@routes.post(
    "/api/v1/locrits/{agent_name}/memory/store-conversation",
    summary="Store a Locrit's conversation",
    responses=error_responses(400, 404, 409),
)
def store_conversation(
    agent_name: AgentName, body: StoreConversation, _: Writer, service: RunningService, request: Request
) -> ConversationStored:
    """Store the messages of a conversation that are new, and make its Locrit, user and session."""
    session_id = body.session_of(agent_name)
    drafts = body.drafts(session_id)
    stored = add_new(service.engine, service.conversations, locrit_scope(request, agent_name), session_id, drafts)
    details = StoredDetails(total_processed=len(drafts), memories_stored=len(stored))
    message = f"Stored {len(stored)} of {len(drafts)} messages"
    return ConversationStored(success=True, message=message, session_id=session_id, details=details)


@routes.delete(
    "/api/locrits/{agent_name}/memory/sessions/{session_id}",
    summary="Delete a Locrit's session",
    responses=error_responses(404),
)
def delete_locrit_session(
    agent_name: AgentName, session_id: SessionId, _: Writer, service: RunningService, request: Request
) -> LocritDone:
    """Forget a session with every message of it, and what was learned in it."""
    removed = service.removals.remove(locrit_scope(request, agent_name), Chooses.SESSION, session_id)
    return LocritDone.saying(f"Deleted the session and {removed.messages} messages")


@routes.put(
    "/api/locrits/{agent_name}/memory/messages/{message_id}",
    summary="Edit a Locrit's message",
    responses=error_responses(404),
)
def edit_locrit_message(
    agent_name: AgentName,
    message_id: MessageId,
    body: EditMessageContent,
    _: Writer,
    service: RunningService,
    request: Request,
) -> LocritDone:
    """Replace what a message says; from then on it is found, and its concepts are read, by that only."""
    service.conversations.edit(locrit_scope(request, agent_name), message_id, content=body.content)
    return LocritDone.saying("Message changed")


@routes.delete(
    "/api/locrits/{agent_name}/memory/messages/{message_id}",
    summary="Delete a Locrit's message",
    responses=error_responses(404),
)
def delete_locrit_message(
    agent_name: AgentName, message_id: MessageId, _: Writer, service: RunningService, request: Request
) -> LocritDone:
    """Forget a message."""
    service.removals.remove(locrit_scope(request, agent_name), Chooses.MESSAGE, message_id)
    return LocritDone.saying("Message deleted")


@routes.put(
    "/api/locrits/{agent_name}/memory/concepts/{concept_id}",
    summary="Edit a Locrit's concept",
    responses=error_responses(400, 404, 409),
)
def edit_locrit_concept(
    agent_name: AgentName,
    concept_id: ConceptId,
    body: EditLocritConcept,
    _: Writer,
    service: RunningService,
    request: Request,
) -> LocritDone:
    """Say what a concept is called and what it is, in the place of what callers said before."""
    service.graph.concepts.update(locrit_scope(request, agent_name), concept_id, body.patch())
    return LocritDone.saying("Concept changed")


@routes.delete(
    "/api/locrits/{agent_name}/memory/concepts/{concept_id}",
    summary="Delete a Locrit's concept",
    responses=error_responses(404),
)
def delete_locrit_concept(
    agent_name: AgentName, concept_id: ConceptId, _: Writer, service: RunningService, request: Request
) -> LocritDone:
    """Forget a concept under all of its names; texts that mention it stay, and it is not read in them again."""
    service.graph.concepts.hide(locrit_scope(request, agent_name), concept_id)
    return LocritDone.saying("Concept deleted")


@routes.post(
    "/api/locrits/{agent_name}/memory/memories", summary="Add a Locrit's memory", responses=error_responses(404)
)
def add_locrit_memory(
    agent_name: AgentName, body: AddLocritMemory, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> LocritMemoryAdded:
    """Remember a text beside what was said; its Locrit is made if it is new."""
    scope = locrit_scope(request, agent_name)
    service.agents.create(scope)
    added = service.engine.add(scope, body.draft(), once=once)
    return LocritMemoryAdded(success=True, memory_id=str(added.id), message="Memory added")


@routes.delete(
    "/api/locrits/{agent_name}/memory/memories/{memory_id}",
    summary="Delete a Locrit's memory",
    responses=error_responses(404, 409),
)
def delete_locrit_memory(
    agent_name: AgentName, memory_id: MemoryId, _: Writer, service: RunningService, request: Request
) -> LocritDone:
    """Forget a memory for good, unless it is pinned."""
    service.engine.delete(locrit_scope(request, agent_name), memory_id)
    return LocritDone.saying("Memory deleted")


@routes.delete(
    "/api/locrits/{agent_name}/memory/clear", summary="Clear a Locrit's memory", responses=error_responses(404)
)
def clear_locrit(
    agent_name: AgentName, body: ClearLocrit, _: Writer, service: RunningService, request: Request
) -> LocritDone:
    """Forget everything of a Locrit, which stays with its settings; a backup is made first."""
    scope = locrit_scope(request, agent_name)
    service.agents.get(scope)
    service.engine.back_up(reason="pre_clear")
    removed = service.removals.clear(scope)
    service.audit.act(scope, "agent.clear", detail=f"{removed.messages} messages, {removed.memories} memories")
    return LocritDone.saying(f"Deleted {removed.messages} messages and {removed.memories} memories")
