"""Routes of Locrits that change data. A Locrit is an agent."""

from __future__ import annotations

from souvenir.api.concepts import ConceptId
from souvenir.api.fields import MemoryId, MessageId, SessionId
from souvenir.compat.locrit.models import (
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
from souvenir.compat.locrit.parameters import LocritWriter
from souvenir.conversations.transcript_sync import add_new
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import MakeOnce, RunningService
from souvenir.server.routing import Routes
from souvenir.store.selection import Chooses

routes = Routes("locrits")


@routes.post(
    "/api/v1/locrits/{agent_name}/memory/store-conversation",
    summary="Store a Locrit's conversation",
    cost=CostClass.LONG,
    sdk="locrits.store",
    errors=[400, 404, 409],
)
def store_conversation(body: StoreConversation, scope: LocritWriter, service: RunningService) -> ConversationStored:
    """Store the new messages of a conversation, and create the Locrit, user and session if they do not exist."""
    session_id = body.session_of(scope.namespace)
    drafts = body.drafts(session_id)
    stored = add_new(service.engine, service.conversations, scope, session_id, drafts)
    details = StoredDetails(total_processed=len(drafts), memories_stored=len(stored))
    message = f"Stored {len(stored)} of {len(drafts)} messages"
    return ConversationStored(success=True, message=message, session_id=session_id, details=details)


@routes.delete(
    "/api/locrits/{agent_name}/memory/sessions/{session_id}",
    summary="Delete a Locrit's session",
    cost=CostClass.LONG,
    sdk="locrits.delete_session",
    errors=[404],
)
def delete_locrit_session(session_id: SessionId, scope: LocritWriter, service: RunningService) -> LocritDone:
    """Delete a session with its messages and the memories learned from it."""
    removed = service.removals.remove(scope, Chooses.SESSION, session_id)
    return LocritDone.saying(f"Deleted the session and {removed.messages} messages")


@routes.put(
    "/api/locrits/{agent_name}/memory/messages/{message_id}",
    summary="Edit a Locrit's message",
    cost=CostClass.WRITE,
    sdk="locrits.edit_message",
    errors=[404],
)
def edit_locrit_message(
    message_id: MessageId, body: EditMessageContent, scope: LocritWriter, service: RunningService
) -> LocritDone:
    """Replace the content of a message and index it again."""
    service.conversations.edit(scope, message_id, content=body.content)
    return LocritDone.saying("Message changed")


@routes.delete(
    "/api/locrits/{agent_name}/memory/messages/{message_id}",
    summary="Delete a Locrit's message",
    cost=CostClass.WRITE,
    sdk="locrits.delete_message",
    errors=[404],
)
def delete_locrit_message(message_id: MessageId, scope: LocritWriter, service: RunningService) -> LocritDone:
    """Delete a message."""
    service.removals.remove(scope, Chooses.MESSAGE, message_id)
    return LocritDone.saying("Message deleted")


@routes.put(
    "/api/locrits/{agent_name}/memory/concepts/{concept_id}",
    summary="Update a Locrit's concept",
    cost=CostClass.WRITE,
    sdk="locrits.edit_concept",
    errors=[400, 404, 409],
)
def edit_locrit_concept(
    concept_id: ConceptId, body: EditLocritConcept, scope: LocritWriter, service: RunningService
) -> LocritDone:
    """Set the name and description of a concept, replacing what callers set before."""
    service.graph.claims.update(scope, concept_id, body.patch())
    return LocritDone.saying("Concept changed")


@routes.delete(
    "/api/locrits/{agent_name}/memory/concepts/{concept_id}",
    summary="Delete a Locrit's concept",
    cost=CostClass.LONG,
    sdk="locrits.delete_concept",
    errors=[404],
)
def delete_locrit_concept(concept_id: ConceptId, scope: LocritWriter, service: RunningService) -> LocritDone:
    """Delete a concept under all its names; texts that mention it are kept, and it is not recognised there again."""
    service.graph.concepts.hide(scope, concept_id)
    return LocritDone.saying("Concept deleted")


@routes.post(
    "/api/locrits/{agent_name}/memory/memories",
    summary="Add a memory to a Locrit",
    cost=CostClass.WRITE,
    sdk="locrits.add_memory",
    errors=[404],
)
def add_locrit_memory(
    body: AddLocritMemory, scope: LocritWriter, service: RunningService, once: MakeOnce
) -> LocritMemoryAdded:
    """Store a text as a memory; the Locrit is created if it does not exist."""
    service.agents.create(scope)
    added = service.engine.add(scope, body.draft(), once=once)
    return LocritMemoryAdded(success=True, memory_id=str(added.id), message="Memory added")


@routes.delete(
    "/api/locrits/{agent_name}/memory/memories/{memory_id}",
    summary="Delete a Locrit's memory",
    cost=CostClass.WRITE,
    sdk="locrits.delete_memory",
    errors=[404, 409],
)
def delete_locrit_memory(memory_id: MemoryId, scope: LocritWriter, service: RunningService) -> LocritDone:
    """Delete a memory permanently, unless it is pinned."""
    service.engine.delete(scope, memory_id)
    return LocritDone.saying("Memory deleted")


@routes.delete(
    "/api/locrits/{agent_name}/memory/clear",
    summary="Clear a Locrit's memory",
    cost=CostClass.LONG,
    sdk="locrits.clear",
    errors=[404],
)
def clear_locrit(body: ClearLocrit, scope: LocritWriter, service: RunningService) -> LocritDone:
    """Delete all data of a Locrit except its settings; a backup is made first."""
    service.agents.get(scope)
    service.engine.back_up_first("pre_clear")
    service.usage.forget(scope.namespace)
    removed = service.removals.clear(scope)
    service.audit.act(scope, "agent.clear", detail=f"{removed.messages} messages, {removed.memories} memories")
    return LocritDone.saying(f"Deleted {removed.messages} messages and {removed.memories} memories")
