"""What the routes of Locrits take and answer, in the words of that wire. Each Locrit is an agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.concept_models import StatedDescription, StatedName
from souvenir.api.conversation_fields import SessionId, UserName
from souvenir.api.fields import MAX_TEXT_CHARS, Clean, Moment, Text, optional_wire_time, wire_time
from souvenir.api.metadata import PlainMetadata
from souvenir.api.summary_models import Summary
from souvenir.conversation.agents import AgentStats
from souvenir.errors import InvalidRequest
from souvenir.graph.changing import ConceptPatch
from souvenir.graph.concepts import ConceptCounts, ConceptDetails
from souvenir.graph.related import Related
from souvenir.store.concepts import Concept
from souvenir.store.messages import Message, MessageDraft
from souvenir.store.sessions import Session
from souvenir.types import Memory, MemoryDraft, MessageRole

MAX_CONVERSATION = 1_000
MAX_SESSION_CHARS = 200
UNKNOWN_USER = "unknown"
"""In the id of a session whose user nobody named."""

SOURCE = "locrit"
"""Of memories that come on these routes."""

IMPORTANCE = "importance"
"""The metadata key of a memory's importance."""
DEFAULT_IMPORTANCE = 0.5

_AT = "2025-04-02T09:30:00.000000+00:00"
_UID = "0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11"
_SESSION = "web_alice_pixie"
MESSAGE_EXAMPLE: dict[str, Any] = {
    "id": _UID,
    "role": "user",
    "content": "My name is Alice",
    "timestamp": _AT,
    "session_id": _SESSION,
    "user_id": "alice",
    "metadata": {},
}
SESSION_EXAMPLE: dict[str, Any] = {
    "id": _SESSION,
    "name": _SESSION,
    "user_id": "alice",
    "created_at": _AT,
    "started_at": _AT,
    "ended_at": None,
    "message_count": 3,
}
CONCEPT_EXAMPLE: dict[str, Any] = {
    "id": "7",
    "name": "Alice",
    "type": "name",
    "description": None,
    "mentions": 2,
}
_RELATED_EXAMPLE: dict[str, Any] = {
    "id": "9",
    "name": "Lisbon",
    "type": "name",
    "description": None,
    "strength": 0.41,
    "relationship_type": "co_occurs",
    "depth": 1,
}
_MEMORY_EXAMPLE: dict[str, Any] = {
    "id": "12",
    "content": "Alice likes blue",
    "importance": 0.8,
    "created_at": _AT,
    "metadata": {},
}
STATISTICS_EXAMPLE: dict[str, Any] = {
    "total_messages": 3,
    "total_sessions": 1,
    "total_concepts": 1,
    "total_users": 1,
    "total_memories": 0,
    "waiting_to_be_read": 0,
}


def example(value: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [value]})


class LocritDone(BaseModel):
    model_config = example({"success": True, "message": "Message deleted"})

    success: bool
    message: str

    @classmethod
    def saying(cls, message: str) -> Self:
        return cls(success=True, message=message)


class LocritStatistics(BaseModel):
    model_config = example(STATISTICS_EXAMPLE)

    total_messages: int
    total_sessions: int
    total_concepts: int
    total_users: int
    total_memories: int = Field(description="Archived ones included.")
    waiting_to_be_read: int = Field(description="Messages and memories whose concepts are still to be found.")

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
    model_config = example(MESSAGE_EXAMPLE)

    id: str
    role: MessageRole
    content: str
    timestamp: str
    session_id: str
    user_id: str | None
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
    model_config = example(SESSION_EXAMPLE)

    id: str
    name: str = Field(description="Its title, or else its id.")
    user_id: str | None
    created_at: str = Field(description="When it started.")
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


class LocritConcept(BaseModel):
    model_config = example(CONCEPT_EXAMPLE)

    id: str
    name: str
    type: str
    description: str | None = Field(description="If somebody stated one.")
    mentions: int = Field(description="Messages and memories that mention it.")

    @classmethod
    def of(cls, concept: Concept) -> Self:
        return cls(
            id=str(concept.id),
            name=concept.name,
            type=concept.kind,
            description=concept.description,
            mentions=concept.owners,
        )


class LocritSummary(BaseModel):
    model_config = example(
        {
            "locrit_name": "pixie",
            "statistics": STATISTICS_EXAMPLE,
            "recent_messages": [MESSAGE_EXAMPLE],
            "recent_sessions": [SESSION_EXAMPLE],
            "top_concepts": [CONCEPT_EXAMPLE],
            "memory_insights": ["Most said about: Alice (2)."],
        }
    )

    locrit_name: str
    statistics: LocritStatistics
    recent_messages: list[LocritMessage] = Field(description="The latest 10, newest first.")
    recent_sessions: list[LocritSession] = Field(description="The latest 10, newest first.")
    top_concepts: list[LocritConcept] = Field(description="The 20 that tell most of the Locrit.")
    memory_insights: list[str] = Field(description="What stands out of all that is known, in sentences.")

    @classmethod
    def of(cls, name: str, summary: Summary) -> Self:
        return cls(
            locrit_name=name,
            statistics=LocritStatistics.of(summary.stats, summary.counts),
            recent_messages=[LocritMessage.of(one) for one in summary.messages],
            recent_sessions=[LocritSession.of(one) for one in summary.sessions],
            top_concepts=[LocritConcept.of(one) for one in summary.concepts],
            memory_insights=list(summary.insights),
        )


class LocritStats(BaseModel):
    model_config = example({"locrit_name": "pixie", "statistics": STATISTICS_EXAMPLE, "access_level": "full"})

    locrit_name: str
    statistics: LocritStatistics
    access_level: Literal["full", "quick"]


class LocritSessions(BaseModel):
    model_config = example({"sessions": [SESSION_EXAMPLE], "total": 1})

    sessions: list[LocritSession] = Field(description="Newest first.")
    total: int


class LocritSessionAnswer(BaseModel):
    model_config = example({"session": SESSION_EXAMPLE})

    session: LocritSession


class LocritHistory(BaseModel):
    model_config = example({"session_id": _SESSION, "messages": [MESSAGE_EXAMPLE], "total": 1})

    session_id: str
    messages: list[LocritMessage] = Field(description="The latest, in the order in which they came.")
    total: int = Field(description="How many the session has.")


class LocritMessageAnswer(BaseModel):
    model_config = example({"message": MESSAGE_EXAMPLE})

    message: LocritMessage


class LocritConcepts(BaseModel):
    model_config = example({"concepts": [CONCEPT_EXAMPLE], "total": 1})

    concepts: list[LocritConcept] = Field(description="Those that tell most first.")
    total: int


class LocritRelated(BaseModel):
    id: str
    name: str
    type: str
    description: str | None
    strength: float = Field(description="Of the strongest path that leads to it.")
    relationship_type: str = Field(description="Of its last step: `co_occurs`, or what somebody stated.")
    depth: int

    @classmethod
    def of(cls, found: Related) -> Self:
        one = found.concept
        return cls(
            id=str(one.id),
            name=one.name,
            type=one.kind,
            description=one.description,
            strength=round(found.strength, 6),
            relationship_type=found.relationship_type,
            depth=found.depth,
        )


class LocritRelatedConcepts(BaseModel):
    model_config = example({"concept": "alice", "related_concepts": [_RELATED_EXAMPLE], "total": 1, "depth": 2})

    concept: str = Field(description="As it was asked for.")
    related_concepts: list[LocritRelated] = Field(description="Strongest first.")
    total: int
    depth: int


class LocritContext(BaseModel):
    """A message that mentions a concept."""

    content: str
    timestamp: str
    role: MessageRole


class LocritConceptDetails(LocritConcept):
    model_config = example(
        {
            **CONCEPT_EXAMPLE,
            "description": "My name is Alice",
            "confidence": 1.0,
            "first_mentioned": _AT,
            "last_mentioned": _AT,
            "context_examples": [{"content": "My name is Alice", "timestamp": _AT, "role": "user"}],
            "related_concepts": [_RELATED_EXAMPLE],
        }
    )

    description: str | None = Field(description="Stated, else the sentence that says most plainly what it is.")
    confidence: float = Field(description="Of what was stated of it; 1 of what is only read.")
    first_mentioned: str | None
    last_mentioned: str | None
    context_examples: list[LocritContext] = Field(description="The latest messages that mention it, newest first.")
    related_concepts: list[LocritRelated] = Field(description="Strongest first.")

    @classmethod
    def of_details(cls, details: ConceptDetails, related: Sequence[Related]) -> Self:
        fields = {
            **LocritConcept.of(details.concept).model_dump(),
            "description": details.description,
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
    id: str
    content: str
    importance: float = Field(description=f"{DEFAULT_IMPORTANCE} where its metadata says none.")
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
    model_config = example({"memories": [_MEMORY_EXAMPLE], "total": 1})

    memories: list[LocritMemory] = Field(description="Newest first, without those that are archived.")
    total: int


class EditMessageContent(BaseModel):
    model_config = example({"content": "My name is Alice Smith"})

    content: Annotated[Text, Field(description="What is said.")]


class EditLocritConcept(BaseModel):
    """What is left out, or null, stays as it is; an empty text takes away what callers said."""

    model_config = example({"name": "Alice Smith", "description": "Who talks with Pixie", "confidence": 0.9})

    name: Annotated[StatedName | None, Field(description="What it is called.")] = None
    description: Annotated[StatedDescription | None, Field(description="What it is.")] = None
    confidence: Annotated[float, Field(ge=0, le=1, description="In what is sent.")] | None = None

    def patch(self) -> ConceptPatch:
        return ConceptPatch(self.name, self.description, confidence=1.0 if self.confidence is None else self.confidence)


class AddLocritMemory(BaseModel):
    model_config = example({"content": "Alice likes blue", "importance": 0.8})

    content: Annotated[Text, Field(description="What is to be remembered.")]
    importance: Annotated[float, Field(ge=0, le=1, description="Kept with it.")] = DEFAULT_IMPORTANCE
    metadata: PlainMetadata | None = None

    def draft(self) -> MemoryDraft:
        return MemoryDraft(self.content, SOURCE, {**(self.metadata or {}), IMPORTANCE: self.importance})


class LocritMemoryAdded(LocritDone):
    model_config = example({"success": True, "memory_id": "12", "message": "Memory added"})

    memory_id: str


class ClearLocrit(BaseModel):
    model_config = example({"confirm": True})

    confirm: Literal[True] = Field(description="That everything is to go.")


class SaidInConversation(BaseModel):
    """A message as chat pages send it; other fields are not looked at."""

    content: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS), Clean] = Field(
        description="One without any text is left out."
    )
    type: MessageRole | None = Field(default=None, description="Who says it; `role` goes before, `user` is meant else.")
    role: MessageRole | None = None
    timestamp: Moment | None = Field(default=None, description="When; a message of a time is stored once.")


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
        min_length=1, max_length=MAX_CONVERSATION, description="In the order in which they were said."
    )
    user_id: UserName | None = None
    session_id: SessionId | None = Field(default=None, description="Without it `web_USER_LOCRIT`.")

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
            if one.content.strip()
        ]


class StoredDetails(BaseModel):
    total_processed: int = Field(description="Messages with a text.")
    memories_stored: int = Field(description="Those of them that were new.")


class ConversationStored(LocritDone):
    model_config = example(
        {
            "success": True,
            "message": "Stored 2 messages",
            "session_id": _SESSION,
            "details": {"total_processed": 2, "memories_stored": 2},
        }
    )

    session_id: str
    details: StoredDetails
