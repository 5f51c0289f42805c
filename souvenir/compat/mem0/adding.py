"""Adding: each message as a memory, or, with a language model, a job that extracts memories from the messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from souvenir.api.extraction import ExtractRequest, take
from souvenir.api.fields import wire_time
from souvenir.compat.mem0.models import AddRequest, Mem0Added, Mem0Memory, SentMessage
from souvenir.compat.mem0.stored import AGENT_ID, EXPIRATION, SOURCE, source_of, stored_metadata
from souvenir.core.labels import ENTITIES, USER_ID
from souvenir.core.types import MemoryDraft, MessageRole, OriginClass, Scope
from souvenir.server.service import Service
from souvenir.store.idempotency import Once

QUEUED = "Memories are being extracted; GET /memory/extract/{id} tells the progress"
OF_AGENT = ", with the name of the agent in the header X-Namespace"


def add_messages(service: Service, scope: Scope, body: AddRequest, once: Once | None, *, named: bool) -> Mem0Added:
    """Store what the messages say, system messages left out.

    A model reads them only if no metadata, date, app or run is given, since what it extracts would lose them.

    :param named: Whether the request names its agent, which is then created.
    """
    said = [message for message in body.messages if message.role is not MessageRole.SYSTEM]
    if named:
        _create_agent(service, scope)
    if not said:
        return Mem0Added(results=[])
    more = _metadata(body)
    if body.infer and service.provider is not None and not more.keys() - {USER_ID}:
        return _extracted(service, scope, body, said, once)
    drafts = [_draft(body, message, more) for message in said]
    ids = service.engine.add_batch(scope, drafts, once=once)
    found = service.engine.get(scope, ids)
    results = [Mem0Memory.of(scope.namespace, found[id_], event="ADD") for id_ in ids if id_ in found]
    return Mem0Added(results=results)


def _create_agent(service: Service, scope: Scope) -> None:
    """Create the scope's agent if it is new; a key for some sources only has no conversations."""
    if scope.sources is None:
        service.agents.create(scope)


def _metadata(body: AddRequest) -> dict[str, Any]:
    entities = {name: body.entity(name) for name in ENTITIES}
    noted = {**entities, EXPIRATION: body.expiration_date}
    return {
        **stored_metadata(body.metadata or {}),
        **{name: value for name, value in noted.items() if value is not None},
    }


def _draft(body: AddRequest, message: SentMessage, metadata: dict[str, Any]) -> MemoryDraft:
    is_user = message.role is MessageRole.USER
    return MemoryDraft(
        text=message.text,
        source=SOURCE,
        metadata=metadata,
        document_at=body.timestamp,
        origin_class=OriginClass.USER if is_user else OriginClass.ASSISTANT,
    )


def _extracted(
    service: Service, scope: Scope, body: AddRequest, said: Sequence[SentMessage], once: Once | None
) -> Mem0Added:
    _create_agent(service, scope)  # so that deleting the user also ends what is still queued
    user = body.entity(USER_ID)
    transcript = json.dumps([{"role": one.role.value, "content": one.text} for one in said], ensure_ascii=False)
    wanted = ExtractRequest(
        messages=transcript,
        source=SOURCE if user is None else source_of(user),
        user=user,
        document_at=None if body.timestamp is None else wire_time(body.timestamp),  # type: ignore[arg-type]
    )
    job = take(service, scope, wanted, once).job
    message = QUEUED.format(id=job.id) + (OF_AGENT if body.entity(AGENT_ID) is not None else "")
    return Mem0Added(results=[], status="PENDING", event_id=job.id, message=message)
