"""Messages: store, search, list, get, edit and delete them."""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, RootModel

from souvenir.api.agents import RemovedResponse
from souvenir.api.fields import (
    AsOf,
    EndMoment,
    MessageId,
    Moment,
    SessionId,
    SpeakerName,
    Text,
    UserName,
    optional_wire_time,
    wire_time,
)
from souvenir.api.metadata import PlainMetadata
from souvenir.api.parameters import (
    COUNTED,
    AgentName,
    AgentReader,
    AgentWriter,
    Limit,
    Offset,
    set_total,
)
from souvenir.core.types import MessageRole
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_CONVERSATION, SAID, MakeOnce, RunningService, Writer, agent_scope
from souvenir.server.routing import Routes
from souvenir.store.messages.messages import Message, MessageDraft, MessageFilter
from souvenir.store.selection import Chooses

routes = Routes("messages")

MAX_BATCH = 1_000


OfMessagesThen = Annotated[
    AsOf | None,
    Query(
        description="Read the messages as they were at this time: ISO-8601, UTC without an offset; a future time means "
        "now. Messages deleted since then are not included."
    ),
]
Role = Annotated[MessageRole, Field(description="The role of the speaker.")]
Content = Annotated[Text, Field(description="The text of the message.")]


class NewMessage(BaseModel):
    """A message to store, without agent and session."""

    role: Role
    content: Content
    metadata: PlainMetadata | None = None
    user: UserName | None = None
    name: SpeakerName | None = None
    created_at: Moment | None = None

    def draft(self, session_id: str | None) -> MessageDraft:
        return MessageDraft(
            self.role,
            self.content,
            self.metadata,
            session_id=session_id,
            user=self.user,
            speaker=self.name,
            created_at=self.created_at,
        )


class AddMessageRequest(NewMessage):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"agent_name": "my_agent", "role": "user", "content": "My favourite colour is blue."}]
        }
    )

    agent_name: AgentName
    session_id: SessionId | None = None


class AddMessagesRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "agent_name": "my_agent",
                    "session_id": "2025-04-02",
                    "messages": [
                        {
                            "role": "user",
                            "name": "Alice",
                            "content": "My favourite colour is blue.",
                            "created_at": "2025-04-02T09:30:00Z",
                        },
                        {
                            "role": "assistant",
                            "content": "Noted: blue it is.",
                            "created_at": "2025-04-02T09:30:05Z",
                        },
                    ],
                }
            ]
        }
    )

    agent_name: AgentName
    session_id: SessionId | None = None
    messages: list[NewMessage] = Field(min_length=1, max_length=MAX_BATCH, description="In chronological order.")

    def drafts(self) -> list[MessageDraft]:
        return [one.draft(self.session_id) for one in self.messages]


class EditMessageRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "My favourite colour is green."}]})

    content: Content | None = None
    metadata: Annotated[PlainMetadata | None, Field(description="Replaces the present value.")] = None


class MessageRecord(BaseModel):
    """A message."""

    id: str = Field(description="A UUID.", examples=["0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11"])
    agent_id: str = Field(description="The UUID of its agent.")
    role: MessageRole
    content: Annotated[str, OF_CONVERSATION]
    created_at: str = Field(description="The time of the message; ISO-8601 in UTC with microseconds.")
    metadata: Annotated[dict[str, Any] | None, OF_CONVERSATION]
    similarity: Annotated[float | None, OF_CONVERSATION] = Field(
        description="Cosine similarity to the query, in [-1, 1]; null outside of searches, and if the query was "
        "not embedded."
    )
    session_id: str
    user: Annotated[str | None, OF_CONVERSATION] = Field(description="The user of the message, or else of its session.")
    name: Annotated[str | None, OF_CONVERSATION] = Field(description="The name of the speaker.")
    edited_at: str | None = Field(description="The time of the last change of content or metadata.")

    @classmethod
    def of(cls, message: Message) -> Self:
        return cls.model_validate(message_fields(message))


class MessageList(RootModel[list[MessageRecord]]):
    """A page of a list."""


class MessageBatch(BaseModel):
    messages: list[MessageRecord] = Field(description="In the order of the request.")
    count: int


def message_fields(message: Message) -> dict[str, Any]:
    """A message on the wire, as nothing found it."""
    return {
        "id": message.uid,
        "agent_id": message.agent_uid,
        "role": message.role,
        "content": message.content,
        "created_at": wire_time(message.created_at),
        "metadata": None if message.metadata is None else dict(message.metadata),
        "similarity": None,
        "session_id": message.session_id,
        "user": message.user,
        "name": message.speaker,
        "edited_at": optional_wire_time(message.edited_at),
    }


@routes.post(
    "/messages",
    summary="Add a message",
    cost=CostClass.WRITE,
    sdk="messages.add",
    errors=[404, 409],
)
def add_message(
    body: AddMessageRequest, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> MessageRecord:
    """Add a message, and create its agent, user and session if they do not exist; it is searchable immediately."""
    scope = agent_scope(request, body.agent_name)
    [message] = service.conversations.add(scope, [body.draft(body.session_id)], once=once)
    return MessageRecord.of(message)


@routes.post(
    "/messages/batch",
    summary="Add messages",
    cost=CostClass.LONG,
    sdk="messages.add_batch",
    errors=[404, 409],
)
def add_messages(
    body: AddMessagesRequest, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> MessageBatch:
    """Add up to 1000 messages in one transaction, all or none, in the given order and with their times."""
    scope = agent_scope(request, body.agent_name)
    messages = service.conversations.add(scope, body.drafts(), once=once)
    return MessageBatch(messages=[MessageRecord.of(one) for one in messages], count=len(messages))


@routes.get(
    "/messages/{agent_name}",
    summary="List messages",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="messages.list",
    errors=[404],
    responses=COUNTED,
)
def list_messages(
    scope: AgentReader,
    service: RunningService,
    response: Response,
    offset: Offset = 0,
    limit: Limit = 100,
    session_id: Annotated[SessionId | None, Query(description="Only messages of this session.")] = None,
    user: Annotated[UserName | None, Query(description="Only those of this user.")] = None,
    role: Annotated[MessageRole | None, Query(description="Only messages of this role.")] = None,
    since: Annotated[Moment | None, Query(description="Earliest `created_at`.")] = None,
    until: Annotated[EndMoment | None, Query(description="Latest time; a date alone includes that whole day.")] = None,
    as_of: OfMessagesThen = None,
) -> MessageList:
    """List an agent's messages, newest first, as they are now or as they were at a point in time."""
    chosen = MessageFilter(session_id, user, role, since, until)
    found, total = service.conversations.page(scope, chosen, as_of, offset=offset, limit=limit)
    set_total(response, total)
    return MessageList([MessageRecord.of(one) for one in found])


@routes.get(
    "/messages/{agent_name}/{message_id}",
    summary="Get a message",
    cost=CostClass.LIGHT,
    access=SAID,
    sdk="messages.get",
    errors=[404],
)
def get_message(
    message_id: MessageId, scope: AgentReader, service: RunningService, as_of: OfMessagesThen = None
) -> MessageRecord:
    """Get a message by its id, as it is now or as it was at a point in time."""
    return MessageRecord.of(service.conversations.get(scope, message_id, as_of))


@routes.patch(
    "/messages/{agent_name}/{message_id}",
    summary="Update a message",
    cost=CostClass.WRITE,
    sdk="messages.update",
    errors=[400, 404],
)
def edit_message(
    message_id: MessageId, body: EditMessageRequest, scope: AgentWriter, service: RunningService
) -> MessageRecord:
    """Replace the content or the metadata of a message and index it again."""
    changed = service.conversations.edit(scope, message_id, content=body.content, metadata=body.metadata)
    return MessageRecord.of(changed)


@routes.delete(
    "/messages/{agent_name}/{message_id}",
    summary="Delete a message",
    cost=CostClass.WRITE,
    sdk="messages.delete",
    tag="agents",
    errors=[404],
)
def delete_message(message_id: MessageId, scope: AgentWriter, service: RunningService) -> RemovedResponse:
    """Delete a message."""
    return RemovedResponse.of(service.removals.remove(scope, Chooses.MESSAGE, message_id))
