"""What the routes of messages take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, RootModel

from souvenir.api.agents import AgentName
from souvenir.api.conversation_fields import SessionId, SpeakerName, UserName
from souvenir.api.fields import EndMoment, Moment, Text, optional_wire_time, wire_time
from souvenir.api.metadata import PlainMetadata
from souvenir.conversation.messages import MessageHit, MessageQuery
from souvenir.store.messages import Message, MessageDraft
from souvenir.types import MessageRole

MAX_BATCH = 1_000

_AT = "2025-04-02T09:30:00.000000+00:00"
MESSAGE_EXAMPLE: dict[str, Any] = {
    "id": "0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11",
    "agent_id": "6f1c2b1e-8d5e-4c7e-9a4f-0f3f6f3f2b7a",
    "role": "user",
    "content": "My favourite colour is blue.",
    "created_at": _AT,
    "metadata": None,
    "similarity": None,
    "session_id": "2025-04-02",
    "user": "alice",
    "name": None,
    "edited_at": None,
}
FOUND_EXAMPLE: dict[str, Any] = {**MESSAGE_EXAMPLE, "similarity": 0.71, "score": 1.64}

Role = Annotated[MessageRole, Field(description="Who says it.")]
Content = Annotated[Text, Field(description="What is said.")]


class NewMessage(BaseModel):
    """A message to be stored, without where it belongs."""

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
    messages: list[NewMessage] = Field(
        min_length=1, max_length=MAX_BATCH, description="In the order in which they were said."
    )

    def drafts(self) -> list[MessageDraft]:
        return [one.draft(self.session_id) for one in self.messages]


class EditMessageRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "My favourite colour is green."}]})

    content: Content | None = None
    metadata: Annotated[PlainMetadata | None, Field(description="In the place of what it has.")] = None


class SearchMessagesRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent_name": "my_agent", "query": "What is my favourite colour?"}]}
    )

    agent_name: AgentName
    query: Annotated[Text, Field(description="What is looked for.")]
    limit: Annotated[
        int | None, Field(ge=1, description="Messages wanted: DEFAULT_SEARCH_LIMIT (5), at most MAX_SEARCH_LIMIT (20).")
    ] = None
    session_id: Annotated[SessionId | None, Field(description="Of this session only.")] = None
    user: Annotated[UserName | None, Field(description="Of this user only.")] = None
    role: Annotated[MessageRole | None, Field(description="Said by these only.")] = None
    since: Annotated[Moment | None, Field(description="Earliest `created_at`.")] = None
    until: Annotated[EndMoment | None, Field(description="Latest; a date alone includes that whole day.")] = None
    exclude_session_id: Annotated[
        SessionId | None, Field(description="Not of this session, such as the running one.")
    ] = None
    auto_intent: Annotated[
        bool,
        Field(
            description="Read what the query says of when: what is of that time scores higher. Asking when something "
            "was said fills `since` and `until` if neither is given; asking for the latest weighs recency."
        ),
    ] = True
    reference_date: Annotated[Moment | None, Field(description="What counts as now for times in the query.")] = None

    role_weight: Annotated[
        float | None,
        Field(
            ge=-1.0,
            le=1.0,
            description="Added to what the user said in a chat with an assistant; below 0 the assistant's messages "
            "come first. Unset: 0.4, or 0 if the query asks what the assistant said or for a summary.",
        ),
    ] = None

    def query_of(self, limit: int, *, explain: bool = False) -> MessageQuery:
        return MessageQuery(
            self.query,
            limit,
            session_id=self.session_id,
            user=self.user,
            role=self.role,
            since=self.since,
            until=self.until,
            exclude_session_id=self.exclude_session_id,
            auto_intent=self.auto_intent,
            now=self.reference_date,
            role_weight=self.role_weight,
            explain=explain,
        )


class MessageRecord(BaseModel):
    """A message."""

    model_config = ConfigDict(json_schema_extra={"examples": [MESSAGE_EXAMPLE]})

    id: str = Field(description="A UUID.")
    agent_id: str = Field(description="The UUID of its agent.")
    role: MessageRole
    content: str
    created_at: str = Field(description="When it was said; ISO-8601 in UTC with microseconds.")
    metadata: dict[str, Any] | None
    similarity: float | None = Field(
        description="Cosine to the query, in [-1, 1]; null outside of a search, and where the query was not embedded."
    )
    session_id: str
    user: str | None = Field(description="Whom the agent talks with: the one it names, else its session's.")
    name: str | None = Field(description="Who says it.")
    edited_at: str | None = Field(description="When content or metadata was last changed.")

    @classmethod
    def of(cls, message: Message) -> Self:
        return cls.model_validate(message_fields(message))


class FoundMessage(MessageRecord):
    """A message that a search found."""

    model_config = ConfigDict(json_schema_extra={"examples": [FOUND_EXAMPLE]})

    score: float = Field(description="What ranks it, from meaning and words; higher is better.")

    @classmethod
    def of_hit(cls, hit: MessageHit) -> Self:
        similarity = None if hit.similarity is None else round(hit.similarity, 6)
        found = {**message_fields(hit.message), "similarity": similarity, "score": round(hit.score, 6)}
        return cls.model_validate(found)


class MessageList(RootModel[list[MessageRecord]]):
    model_config = ConfigDict(json_schema_extra={"examples": [[MESSAGE_EXAMPLE]]})


class FoundMessages(RootModel[list[FoundMessage]]):
    model_config = ConfigDict(json_schema_extra={"examples": [[FOUND_EXAMPLE]]})


class MessageBatch(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"messages": [MESSAGE_EXAMPLE], "count": 1}]})

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
