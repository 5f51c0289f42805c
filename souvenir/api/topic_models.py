"""What the routes of topics take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import Clean, optional_wire_time, wire_time
from souvenir.graph.topics import NamedTopic, Term, TopicDetails
from souvenir.store.messages import Message
from souvenir.store.topics import OfSession

_AT = "2025-04-02T09:30:00.000000+00:00"
_TERM_EXAMPLE: dict[str, Any] = {"concept_id": 12, "name": "Lisbon", "weight": 1.0}
_TOPIC_EXAMPLE: dict[str, Any] = {
    "id": 1,
    "name": "Sailing",
    "named_by": "caller",
    "summary": None,
    "terms": [_TERM_EXAMPLE],
    "sessions": 2,
    "messages": 14,
    "first_at": _AT,
    "last_at": _AT,
}
_SESSION_EXAMPLE: dict[str, Any] = {
    "session_id": "2025-04-02",
    "title": None,
    "relevance": 0.71,
    "primary_topic": True,
    "messages": 7,
    "started_at": _AT,
    "last_message_at": _AT,
}
_MESSAGE_EXAMPLE: dict[str, Any] = {
    "message_id": "0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11",
    "session_id": "2025-04-02",
    "content": "We sailed from Lisbon.",
    "created_at": _AT,
    "relevance": 0.6,
}

_MAX_NAME_CHARS = 200
_MAX_SUMMARY_CHARS = 4_000


class DescribeTopicRequest(BaseModel):
    """What is left out stays as it is; null takes it away."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Sailing"}]})

    name: Annotated[str, StringConstraints(min_length=1, max_length=_MAX_NAME_CHARS), Clean] | None = Field(
        default=None, description="Without one, the topic is called by what tells most of it."
    )
    summary: Annotated[str, StringConstraints(min_length=1, max_length=_MAX_SUMMARY_CHARS), Clean] | None = Field(
        default=None, description="What the topic is about, in sentences."
    )

    def changes(self) -> dict[str, str | None]:
        return self.model_dump(exclude_unset=True)


class TopicTerm(BaseModel):
    concept_id: int
    name: str
    weight: float = Field(description="How much it tells of the topic; 1 for what tells most.")

    @classmethod
    def of(cls, term: Term) -> Self:
        return cls(concept_id=term.concept_id, name=term.name, weight=term.weight)


class TopicRecord(BaseModel):
    """What several sessions are about, or one."""

    model_config = ConfigDict(json_schema_extra={"examples": [_TOPIC_EXAMPLE]})

    id: int
    name: str = Field(description="As somebody called it, else the names of what tells most of it.")
    named_by: str | None = Field(description="`caller`; null if nobody named it or said what it is about.")
    summary: str | None
    terms: list[TopicTerm] = Field(description="The concepts that tell most of it, those first.")
    sessions: int = Field(description="That belong to it.")
    messages: int = Field(description="Of these sessions.")
    first_at: str = Field(description="When the first of them began.")
    last_at: str = Field(description="When the latest of their messages was said.")

    @classmethod
    def fields_of(cls, named: NamedTopic) -> dict[str, Any]:
        topic = named.topic
        return {
            "id": topic.id,
            "name": named.name,
            "named_by": topic.named_by,
            "summary": topic.summary,
            "terms": [TopicTerm.of(term) for term in named.terms],
            "sessions": topic.sessions,
            "messages": topic.messages,
            "first_at": wire_time(topic.first_at),
            "last_at": wire_time(topic.last_at),
        }

    @classmethod
    def of(cls, named: NamedTopic) -> Self:
        return cls(**cls.fields_of(named))


class TopicPage(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"topics": [_TOPIC_EXAMPLE], "total": 1, "offset": 0, "limit": 100}]}
    )

    topics: list[TopicRecord] = Field(description="Those with the most sessions first.")
    total: int = Field(description="How many there are on all pages.")
    offset: int
    limit: int


class TopicSession(BaseModel):
    session_id: str
    title: str | None
    relevance: float = Field(description="How near it is to the topic, 0 to 1.")
    primary_topic: bool = Field(description="Whether it belongs to this topic; else it is near it too.")
    messages: int
    started_at: str
    last_message_at: str | None

    @classmethod
    def of(cls, session: OfSession) -> Self:
        return cls(
            session_id=session.name,
            title=session.title,
            relevance=session.about.relevance,
            primary_topic=session.about.is_primary,
            messages=session.messages,
            started_at=wire_time(session.started_at),
            last_message_at=optional_wire_time(session.last_message_at),
        )


class TopicMessage(BaseModel):
    message_id: str
    session_id: str
    content: str
    created_at: str
    relevance: float = Field(description="Which share of what tells the topic it mentions, by weight.")

    @classmethod
    def of(cls, message: Message, relevance: float) -> Self:
        return cls(
            message_id=message.uid,
            session_id=message.session_id,
            content=message.content,
            created_at=wire_time(message.created_at),
            relevance=round(relevance, 4),
        )


class TopicDetailsRecord(TopicRecord):
    """A topic with its sessions and with the messages that discuss it most."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{**_TOPIC_EXAMPLE, "in_sessions": [_SESSION_EXAMPLE], "in_messages": [_MESSAGE_EXAMPLE]}]
        }
    )

    in_sessions: list[TopicSession] = Field(
        description="Those that belong to it, nearest first, then those that are near it too; 100 at most."
    )
    in_messages: list[TopicMessage] = Field(description="The 10 messages of its sessions that discuss it most.")

    @classmethod
    def of_details(cls, details: TopicDetails) -> Self:
        return cls(
            **cls.fields_of(details.named),
            in_sessions=[TopicSession.of(one) for one in details.sessions],
            in_messages=[TopicMessage.of(message, relevance) for message, relevance in details.messages],
        )
