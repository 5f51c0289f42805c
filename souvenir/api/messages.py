"""Messages: stored one by one and in batches, listed, found, changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from souvenir.api.agents import AgentName
from souvenir.api.caller import Admin, Reader, RunningService, Writer, agent_scope, result_limit
from souvenir.api.conversation_fields import MessageId, SessionId, UserName
from souvenir.api.errors import error_responses
from souvenir.api.fields import EndMoment, Moment
from souvenir.api.json_route import router
from souvenir.api.message_explain_models import ExplainMessagesResponse
from souvenir.api.message_models import (
    AddMessageRequest,
    AddMessagesRequest,
    EditMessageRequest,
    FoundMessage,
    FoundMessages,
    MessageBatch,
    MessageList,
    MessageRecord,
    SearchMessagesRequest,
)
from souvenir.api.once import MakeOnce
from souvenir.api.pages import COUNTED, Limit, Offset, described_headers, set_total
from souvenir.api.relevance_fields import RELEVANCE_HEADERS, set_relevance
from souvenir.errors import InvalidRequest
from souvenir.settings import Settings
from souvenir.store.messages import MessageFilter
from souvenir.types import MessageRole

routes = router("messages")

DEGRADED_HEADER = "X-Search-Degraded"
_SEARCHED = described_headers(
    (
        DEGRADED_HEADER,
        "What of the search could not run, separated by commas: an arm (`vector`, `lexical`), the cross-encoder "
        "(`rerank`); absent if all did.",
        "string",
    ),
    *RELEVANCE_HEADERS,
)


@routes.post("/messages", summary="Store a message", responses=error_responses(404, 409))
def add_message(
    body: AddMessageRequest, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> MessageRecord:
    """Store a message, and make its agent, user and session if they are new; it can be found from then on."""
    scope = agent_scope(request, body.agent_name)
    [message] = service.conversations.add(scope, [body.draft(body.session_id)], once=once)
    return MessageRecord.of(message)


@routes.post("/messages/batch", summary="Store many messages", responses=error_responses(404, 409))
def add_messages(
    body: AddMessagesRequest, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> MessageBatch:
    """Store up to 1000 messages in one transaction, all or none, in their order and with their times."""
    scope = agent_scope(request, body.agent_name)
    messages = service.conversations.add(scope, body.drafts(), once=once)
    return MessageBatch(messages=[MessageRecord.of(one) for one in messages], count=len(messages))


@routes.post("/messages/search", summary="Search messages", responses=_SEARCHED | error_responses(404))
def search_messages(
    body: SearchMessagesRequest, _: Reader, service: RunningService, request: Request, response: Response
) -> FoundMessages:
    """Find the messages that answer a query best, by meaning and by words, among all that the agent has."""
    query = body.query_of(result_limit(request, search_limit(service.settings, body.limit)))
    found = service.conversations.search(agent_scope(request, body.agent_name), query)
    set_relevance(response, found.relevance, found.evidence)
    if found.degraded:
        response.headers[DEGRADED_HEADER] = ",".join(found.degraded)
    return FoundMessages([FoundMessage.of_hit(hit) for hit in found.hits])


@routes.post("/messages/search/explain", summary="Search messages, and explain", responses=error_responses(404))
def explain_messages(
    body: SearchMessagesRequest, _: Admin, service: RunningService, request: Request
) -> ExplainMessagesResponse:
    """Search like `/messages/search`, and show what each score is made of."""
    query = body.query_of(search_limit(service.settings, body.limit), explain=True)
    found = service.conversations.search(agent_scope(request, body.agent_name), query)
    return ExplainMessagesResponse.of(body.query, found, service.settings.search_fusion)


@routes.get("/messages/{agent_name}", summary="List messages", responses=COUNTED | error_responses(404))
def list_messages(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    response: Response,
    offset: Offset = 0,
    limit: Limit = 100,
    session_id: Annotated[SessionId | None, Query(description="Of this session only.")] = None,
    user: Annotated[UserName | None, Query(description="Of this user only.")] = None,
    role: Annotated[MessageRole | None, Query(description="Said by these only.")] = None,
    since: Annotated[Moment | None, Query(description="Earliest `created_at`.")] = None,
    until: Annotated[EndMoment | None, Query(description="Latest; a date alone includes that whole day.")] = None,
) -> MessageList:
    """List an agent's messages, most recent first."""
    chosen = MessageFilter(session_id, user, role, since, until)
    scope = agent_scope(request, agent_name)
    found, total = service.conversations.page(scope, chosen, offset=offset, limit=limit)
    set_total(response, total)
    return MessageList([MessageRecord.of(one) for one in found])


@routes.get("/messages/{agent_name}/{message_id}", summary="Get a message", responses=error_responses(404))
def get_message(
    agent_name: AgentName, message_id: MessageId, _: Reader, service: RunningService, request: Request
) -> MessageRecord:
    """Get a message by its id."""
    return MessageRecord.of(service.conversations.get(agent_scope(request, agent_name), message_id))


@routes.patch("/messages/{agent_name}/{message_id}", summary="Change a message", responses=error_responses(400, 404))
def edit_message(
    agent_name: AgentName,
    message_id: MessageId,
    body: EditMessageRequest,
    _: Writer,
    service: RunningService,
    request: Request,
) -> MessageRecord:
    """Replace a message's content, its metadata or both; from then on it is found by its new content only."""
    scope = agent_scope(request, agent_name)
    changed = service.conversations.edit(scope, message_id, content=body.content, metadata=body.metadata)
    return MessageRecord.of(changed)


def search_limit(settings: Settings, asked: int | None) -> int:
    """How many hits a search gives.

    :raises InvalidRequest: If more are asked for than may be.
    """
    if asked is None:
        return min(settings.default_search_limit, settings.max_search_limit)
    if asked > settings.max_search_limit:
        raise InvalidRequest(f"limit is at most {settings.max_search_limit} (MAX_SEARCH_LIMIT); ask for fewer")
    return asked
