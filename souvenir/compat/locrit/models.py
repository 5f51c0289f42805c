"""Schemas of the routes of Locrits. A Locrit is an agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from souvenir.api.concepts import StatedDescription, StatedName
from souvenir.api.fields import (
    MAX_TEXT_CHARS,
    Clean,
    Moment,
    Record,
    Rounded,
    SessionId,
    StoredText,
    Text,
    UserName,
    optional_wire_time,
    wire_time,
)
from souvenir.api.metadata import Metadata, read_fields
from souvenir.conversations.agents import AgentStats
from souvenir.core.errors import InvalidRequest
from souvenir.core.text import is_blank
from souvenir.core.types import Memory, MemoryDraft, MessageRole
from souvenir.knowledge.claim_types import ConceptPatch
from souvenir.knowledge.concepts import ConceptCounts, ConceptDetails
from souvenir.knowledge.related import ReachedConcept
from souvenir.server.request_guards import OF_BOTH
from souvenir.store.messages.messages import Message, MessageDraft
from souvenir.store.messages.sessions import Session

MAX_CONVERSATION = 1_000
MAX_SESSION_CHARS = 200
UNKNOWN_USER = "unknown"
"""The user in the id of a session without a user."""

SOURCE = "locrit"
"""The default source of memories from these routes."""

IMPORTANCE = "importance"
"""The metadata key of a memory's importance."""
DEFAULT_IMPORTANCE = 0.5


def example(value: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [value]})


class LocritDone(BaseModel):
    success: bool
    message: str = Field(examples=["Message deleted"])

    @classmethod
    def saying(cls, message: str) -> Self:
        return cls(success=True, message=message)


class LocritStatistics(BaseModel):
    total_messages: int
    total_sessions: int
    total_concepts: int
    total_users: int
    total_memories: int = Field(description="Including archived ones.")
    waiting_to_be_read: int = Field(
        description="The number of messages and memories that still wait for concept recognition."
    )

    @classmethod
    def of(cls, stats: AgentStats, known: ConceptCounts) -> Self:
        counts = stats.counts
        return cls(
            total_messages=counts.messages,
            total_sessions=counts.sessions,
            total_concepts=known.concepts,
            total_users=counts.users,
            total_memories=counts.memories,
            waiting_to_be_read=known.waiting,
        )


class LocritMessage(BaseModel):
    id: str = Field(examples=["0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11"])
    role: MessageRole
    content: str
    timestamp: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    session_id: str
    user_id: str | None = Field(examples=["alice"])
    metadata: dict[str, Any]

    @classmethod
    def of(cls, message: Message) -> Self:
        return cls(
            id=message.uid,
            role=message.role,
            content=message.content,
            timestamp=wire_time(message.created_at),
            session_id=message.session_id,
            user_id=message.user,
            metadata=dict(message.metadata or {}),
        )


class LocritSession(BaseModel):
    id: str = Field(examples=["web_alice_pixie"])
    name: str = Field(description="The title, or else the id.", examples=["web_alice_pixie"])
    user_id: str | None = Field(examples=["alice"])
    created_at: str = Field(description="The start time.")
    started_at: str
    ended_at: str | None
    message_count: int

    @classmethod
    def of(cls, session: Session) -> Self:
        return cls(
            id=session.name,
            name=session.title or session.name,
            user_id=session.user,
            created_at=wire_time(session.started_at),
            started_at=wire_time(session.started_at),
            ended_at=optional_wire_time(session.ended_at),
            message_count=session.messages,
        )


_Id = Annotated[str, BeforeValidator(str)]


class LocritConcept(Record):
    id: _Id = Field(examples=["7"])
    name: str = Field(examples=["Alice"])
    type: str = Field(validation_alias="kind", examples=["name"])
    description: Annotated[str | None, OF_BOTH] = Field(
        description="The stated description, or else the sentence of a text that defines the concept best."
    )
    mentions: int = Field(validation_alias="owners", description="The number of messages and memories that mention it.")


class LocritSummary(BaseModel):
    locrit_name: str = Field(examples=["pixie"])
    statistics: LocritStatistics
    recent_messages: list[LocritMessage] = Field(description="The latest 10, newest first.")
    recent_sessions: list[LocritSession] = Field(description="The latest 10, newest first.")
    top_concepts: list[LocritConcept] = Field(description="The 20 most characteristic concepts.")
    memory_insights: list[str] = Field(
        description="At most 7 sentences that are worth acting on.",
        examples=[["Due on Friday, 6 March: “I'll send Priya the draft by Friday.” (3 March)."]],
    )


class LocritStats(BaseModel):
    locrit_name: str = Field(examples=["pixie"])
    statistics: LocritStatistics
    access_level: Literal["full", "quick"]


class LocritSessions(BaseModel):
    sessions: list[LocritSession] = Field(description="Newest first.")
    total: int


class LocritSessionAnswer(BaseModel):
    session: LocritSession


class LocritHistory(BaseModel):
    session_id: str
    messages: list[LocritMessage] = Field(description="The latest messages in chronological order.")
    total: int = Field(description="The number of messages in the session.")


class LocritMessageAnswer(BaseModel):
    message: LocritMessage


class LocritConcepts(BaseModel):
    concepts: list[LocritConcept] = Field(description="Most characteristic first.")
    total: int


class LocritRelated(Record):
    id: _Id = Field(validation_alias=AliasPath("concept", "id"), examples=["9"])
    name: str = Field(validation_alias=AliasPath("concept", "name"), examples=["Lisbon"])
    type: str = Field(validation_alias=AliasPath("concept", "kind"), examples=["name"])
    description: Annotated[str | None, OF_BOTH] = Field(validation_alias=AliasPath("concept", "description"))
    strength: Rounded = Field(description="The strength of the strongest path to it.")
    relationship_type: str = Field(description="The type of the last step: `co_occurs` or a stated relation type.")
    depth: int


class LocritRelatedConcepts(BaseModel):
    concept: str = Field(description="The query as it was sent.", examples=["alice"])
    related_concepts: list[LocritRelated] = Field(description="Strongest first.")
    total: int
    depth: int


class LocritContext(BaseModel):
    """A message that mentions a concept."""

    content: str
    timestamp: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    role: MessageRole


class LocritConceptDetails(LocritConcept):
    description: Annotated[str | None, OF_BOTH] = Field(
        description="The stated description, or else the sentence that best defines the concept.",
        examples=["My name is Alice"],
    )
    confidence: float = Field(description="The confidence of its statements; 1 if it is only mentioned.")
    first_mentioned: str | None = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    last_mentioned: str | None = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    context_examples: list[LocritContext] = Field(description="The latest messages that mention it, newest first.")
    related_concepts: list[LocritRelated] = Field(description="Strongest first.")

    @classmethod
    def of_details(cls, details: ConceptDetails, related: Sequence[ReachedConcept]) -> Self:
        fields = {
            **asdict(details.concept),
            "confidence": details.confidence,
            "first_mentioned": optional_wire_time(details.concept.first_at),
            "last_mentioned": optional_wire_time(details.concept.last_at),
            "context_examples": [
                LocritContext(content=one.content, timestamp=wire_time(one.created_at), role=one.role)
                for one in details.messages
            ],
            "related_concepts": [LocritRelated.of(one) for one in related],
        }
        return cls.model_validate(fields)


class LocritMemory(BaseModel):
    id: str = Field(examples=["12"])
    content: str
    importance: float = Field(description=f"The importance from its metadata; {DEFAULT_IMPORTANCE} by default.")
    created_at: str
    metadata: dict[str, Any]

    @classmethod
    def of(cls, memory: Memory) -> Self:
        metadata = dict(memory.metadata)
        importance = metadata.pop(IMPORTANCE, DEFAULT_IMPORTANCE)
        known = isinstance(importance, int | float) and not isinstance(importance, bool)
        return cls(
            id=str(memory.id),
            content=memory.text,
            importance=importance if known else DEFAULT_IMPORTANCE,
            created_at=wire_time(memory.created_at),
            metadata=metadata,
        )


class LocritMemories(BaseModel):
    memories: list[LocritMemory] = Field(description="Newest first, without archived ones.")
    total: int


class EditMessageContent(BaseModel):
    model_config = example({"content": "My name is Alice Smith"})

    content: Annotated[Text, Field(description="The text of the message.")]


class EditLocritConcept(BaseModel):
    """Omitted or null fields are kept; an empty text removes the value that callers set."""

    model_config = example({"name": "Alice Smith", "description": "Who talks with Pixie", "confidence": 0.9})

    name: Annotated[StatedName | None, Field(description="The name.")] = None
    description: Annotated[StatedDescription | None, Field(description="The description.")] = None
    confidence: (
        Annotated[float, Field(ge=0, le=1, description="The confidence of the change; 1 by default.")] | None
    ) = None

    def patch(self) -> ConceptPatch:
        return ConceptPatch(self.name, self.description, confidence=1.0 if self.confidence is None else self.confidence)


class AddLocritMemory(BaseModel):
    model_config = example({"content": "Alice likes blue", "importance": 0.8})

    content: Annotated[StoredText, Field(description="The text of the memory.")]
    importance: Annotated[float, Field(ge=0, le=1, description="Stored with the memory.")] = DEFAULT_IMPORTANCE
    metadata: Metadata | None = None

    def draft(self) -> MemoryDraft:
        fields = read_fields(self.metadata)
        return fields.draft(self.content, SOURCE, {IMPORTANCE: self.importance})


class LocritMemoryAdded(LocritDone):
    memory_id: str = Field(examples=["12"])


def _is_true(value: object) -> object:
    """:raises ValueError: If it only equals true, as 1 does."""
    if value is not True:
        raise ValueError("send true to confirm")
    return value


class ClearLocrit(BaseModel):
    model_config = example({"confirm": True})

    confirm: Annotated[Literal[True], BeforeValidator(_is_true)] = Field(
        description="Confirms that everything will be deleted."
    )


class SaidInConversation(BaseModel):
    """A message as chat pages send it; other fields are ignored."""

    content: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS), Clean] = Field(
        description="Messages without text are skipped."
    )
    type: MessageRole | None = Field(
        default=None, description="The speaker; `role` takes precedence, and `user` is the default."
    )
    role: MessageRole | None = None
    timestamp: Moment | None = Field(default=None, description="The time; a message with the same time is stored once.")


class StoreConversation(BaseModel):
    model_config = example(
        {
            "user_id": "alice",
            "messages": [
                {"type": "user", "content": "My name is Alice", "timestamp": "2025-04-02T09:30:00Z"},
                {"type": "assistant", "content": "Nice to meet you, Alice!", "timestamp": "2025-04-02T09:30:02Z"},
            ],
        }
    )

    messages: list[SaidInConversation] = Field(
        min_length=1, max_length=MAX_CONVERSATION, description="In chronological order."
    )
    user_id: UserName | None = None
    session_id: SessionId | None = Field(
        default=None, description="The id of the session; `web_USER_LOCRIT` by default."
    )

    def session_of(self, locrit: str) -> str:
        """:raises InvalidRequest: If the names make an id that is too long."""
        made = self.session_id or f"web_{self.user_id or UNKNOWN_USER}_{locrit}"
        if len(made) > MAX_SESSION_CHARS:
            raise InvalidRequest(f"web_USER_LOCRIT is longer than {MAX_SESSION_CHARS} characters; give a session_id")
        return made

    def drafts(self, session_id: str) -> list[MessageDraft]:
        return [
            MessageDraft(
                one.role or one.type or MessageRole.USER,
                one.content,
                session_id=session_id,
                user=self.user_id,
                created_at=one.timestamp,
            )
            for one in self.messages
            if not is_blank(one.content)
        ]


class StoredDetails(BaseModel):
    total_processed: int = Field(description="The number of messages with text.")
    memories_stored: int = Field(description="The number of new messages.")


class ConversationStored(LocritDone):
    session_id: str
    details: StoredDetails
