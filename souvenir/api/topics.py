"""Topics: the subjects of the messages of an agent, with names that callers give."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Self

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import MAX_ID, Clean, OptionalWireTime, Record, WireTime, wire_time
from souvenir.api.parameters import AgentWriter, Limit, Offset, PresentAgentReader
from souvenir.core.errors import NothingToDo
from souvenir.knowledge.topics import NamedTopic, TopicDetails
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_CONVERSATION, REMEMBERED, RunningService
from souvenir.server.routing import Routes
from souvenir.store.messages.messages import Message

routes = Routes("agents")


_MAX_NAME_CHARS = 200
_MAX_SUMMARY_CHARS = 4_000


class DescribeTopicRequest(BaseModel):
    """Omitted fields are kept; null removes the value."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Sailing"}]})

    name: (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_MAX_NAME_CHARS), Clean] | None
    ) = Field(
        default=None,
        description="The name of the topic; without one, it is named by phrases of its messages.",
    )
    summary: (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_MAX_SUMMARY_CHARS), Clean]
        | None
    ) = Field(default=None, description="A summary of the topic.")

    def changes(self) -> dict[str, str | None]:
        """Return the given fields.

        :raises NothingToDo: If there is none.
        """
        if not self.model_fields_set:
            raise NothingToDo("Nothing to change; give name or summary")
        return self.model_dump(exclude_unset=True)


class TopicTerm(Record):
    concept_id: int
    name: str = Field(examples=["Lisbon"])
    weight: float = Field(description="The weight in the topic; 1 for the most characteristic concept.")


class TopicRecord(Record):
    """A subject of one or more sessions."""

    id: int
    name: str = Field(
        description="The name that a caller set, else that of a model, else up to three phrases of its messages; empty "
        "if none says its subject.",
        examples=["Sailing"],
    )
    named_by: str | None = Field(
        description="`caller` or `model`, the first that gave it a name or summary; else null.", examples=["caller"]
    )
    summary: Annotated[str | None, OF_CONVERSATION] = Field(
        description="The summary that a caller set, else that of a model, else sentences of its messages that cover it "
        "best."
    )
    terms: list[TopicTerm] = Field(description="The most characteristic concepts first.")
    sessions: int = Field(description="The number of sessions with messages of it.")
    messages: int = Field(description="The number of its messages.")
    first_at: WireTime = Field(description="The time of its first message.")
    last_at: WireTime = Field(description="The time of its latest message.")

    @classmethod
    def of_topic(cls, named: NamedTopic, **others: object) -> Self:
        shown = {"name": named.name, "named_by": named.named_by, "summary": named.summary, "terms": named.terms}
        return cls.model_validate({**asdict(named.topic), **shown, **others})


class TopicPage(BaseModel):
    topics: list[TopicRecord] = Field(description="Topics that have a name, those with the most sessions first.")
    total: int = Field(description="The total number of items on all pages.")
    offset: int
    limit: int


class TopicSession(Record):
    session_id: str = Field(validation_alias="name")
    title: str | None
    relevance: float = Field(description="The similarity to the topic, 0 to 1.")
    primary_topic: bool = Field(
        validation_alias="is_primary", description="True if no other topic has more of its messages."
    )
    messages: int = Field(description="The number of its messages that belong to the topic.")
    started_at: WireTime
    last_message_at: OptionalWireTime


class TopicMessage(BaseModel):
    message_id: str
    session_id: str
    content: str
    created_at: str
    relevance: float = Field(description="The weighted share of the topic's concepts that it mentions.")

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
    """A topic with its sessions and its most relevant messages."""

    in_sessions: list[TopicSession] = Field(
        description="Sessions with messages of it: those whose primary topic it is, then others; at most 100."
    )
    in_messages: list[TopicMessage] = Field(description="Its 10 most relevant messages.")

    @classmethod
    def of_details(cls, details: TopicDetails) -> Self:
        in_messages = [TopicMessage.of(message, relevance) for message, relevance in details.messages]
        return cls.of_topic(details.named, in_sessions=details.sessions, in_messages=in_messages)


_TOPICS = "/agents/{agent_name}/topics"
_TOPIC = f"{_TOPICS}/{{topic_id}}"

TopicId = Annotated[int, Path(ge=0, le=MAX_ID, description="The id of a topic.", examples=[1])]


@routes.get(_TOPICS, summary="List topics", cost=CostClass.LIGHT, access=REMEMBERED, sdk="agents.topics", errors=[404])
def list_topics(
    scope: PresentAgentReader, service: RunningService, offset: Offset = 0, limit: Limit = 100
) -> TopicPage:
    """List the topics of an agent; messages of the last half minute may be missing."""
    found, total = service.graph.topics.page(scope, offset=offset, limit=limit)
    return TopicPage(topics=[TopicRecord.of_topic(one) for one in found], total=total, offset=offset, limit=limit)


@routes.get(_TOPIC, summary="Get a topic", cost=CostClass.LIGHT, sdk="agents.topic", errors=[404])
def get_topic(topic_id: TopicId, scope: PresentAgentReader, service: RunningService) -> TopicDetailsRecord:
    """Get a topic with its sessions and its most relevant messages."""
    return TopicDetailsRecord.of_details(service.graph.topics.details(scope, topic_id))


@routes.patch(
    _TOPIC,
    summary="Update a topic",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="agents.describe_topic",
    errors=[400, 404, 409],
)
def describe_topic(
    topic_id: TopicId, body: DescribeTopicRequest, scope: AgentWriter, service: RunningService
) -> TopicRecord:
    """Set the name or summary of a topic; both are kept as long as the topic exists."""
    return TopicRecord.of_topic(service.graph.topics.describe(scope, topic_id, body.changes()))
