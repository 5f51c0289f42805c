"""Schemas of Mem0's routes. Options that change nothing here are accepted and ignored; unknown ones are refused."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from souvenir.api.fields import Clean, SessionId, StoredText, UserName, moment, wire_time
from souvenir.api.metadata import PlainMetadata
from souvenir.compat.mem0.stored import AGENT_ID, EXPIRATION, shown_metadata, text_of, user_of
from souvenir.core.labels import APP_ID, ENTITIES, RUN_ID
from souvenir.core.types import HistoryEntry, JsonObject, Memory, MessageRole
from souvenir.server.request_guards import OF_MEMORY, namespace_name

MAX_MESSAGES = 1_000
MAX_TOP_K = 1_000
MAX_BATCH = 1_000
MAX_TIME_CHARS = 50


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise ValueError("takes a date such as 2030-12-31") from error


def time_of(value: Any) -> datetime:
    """Return the time of seconds since 1970, or of an ISO-8601 text.

    :raises ValueError: If it is neither.
    """
    try:
        if isinstance(value, str) and len(value) <= MAX_TIME_CHARS:
            return moment(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise ValueError("takes seconds since 1970, or an ISO-8601 date or time such as 2024-07-01T00:00:00Z")


Day = Annotated[str, AfterValidator(_day)]
Timestamp = Annotated[datetime, BeforeValidator(time_of)]
QueryText = Annotated[str, StringConstraints(min_length=1, max_length=10_000), Clean]
AgentId = Annotated[str, AfterValidator(namespace_name)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Entities(Strict):
    user_id: UserName | None = None
    agent_id: AgentId | None = None
    app_id: UserName | None = None
    run_id: SessionId | None = None


class TextPart(Strict):
    type: Literal["text"]
    text: StoredText


class SentMessage(BaseModel):
    """A message; members besides these, such as the name of a speaker, are ignored."""

    role: MessageRole
    content: StoredText | Annotated[list[TextPart], Field(min_length=1, max_length=100)]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)


class AddRequest(Entities):
    messages: Annotated[list[SentMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    filters: Entities | None = None
    metadata: PlainMetadata | None = None
    infer: bool = True
    timestamp: Timestamp | None = None
    expiration_date: Day | None = None
    custom_categories: Any = None
    custom_instructions: Any = None
    agent_custom_instructions: Any = None
    structured_data_schema: Any = None
    async_mode: Any = None
    output_format: Any = None
    version: Any = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        for name in (*ENTITIES, AGENT_ID):
            if self.entity(name) == "*":
                raise ValueError(f"{name} cannot be *, which means any value in filters; choose another name")
        return self

    def entity(self, name: str) -> str | None:
        """Return an entity of the request, from its own field or from `filters`, where the client's options put it."""
        own: str | None = getattr(self, name)
        return own if own is not None or self.filters is None else getattr(self.filters, name)


class ListRequest(Strict):
    filters: dict[str, Any] | None = None
    start_date: str | None = None
    end_date: str | None = None
    categories: list[str] | None = None
    show_expired: bool = False
    latest_only: Any = None
    fields: list[str] | None = None
    version: Any = None


class SearchMem0(Strict):
    query: QueryText
    filters: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    categories: list[str] | None = None
    top_k: int = Field(default=10, ge=1, le=MAX_TOP_K)
    threshold: float | None = Field(default=None, ge=0, le=1)
    fields: list[str] | None = None
    show_expired: bool = False
    reference_date: Timestamp | None = None
    rerank: Any = None
    latest_only: Any = None
    keyword_search: Any = None
    version: Any = None


class UpdateMem0(Strict):
    text: StoredText | None = None
    metadata: PlainMetadata | None = None
    timestamp: Timestamp | None = None
    expiration_date: Day | None = None


class BatchedUpdate(UpdateMem0):
    memory_id: Annotated[str, StringConstraints(max_length=100)]


class BatchedDelete(Strict):
    memory_id: Annotated[str, StringConstraints(max_length=100)]


class BatchUpdate(Strict):
    memories: Annotated[list[BatchedUpdate], Field(min_length=1, max_length=MAX_BATCH)]


class BatchDelete(Strict):
    memories: Annotated[list[BatchedDelete], Field(min_length=1, max_length=MAX_BATCH)]


class Mem0Done(BaseModel):
    message: str


class Mem0Accepted(Mem0Done):
    id: str


class Mem0Memory(BaseModel):
    """A memory as Mem0 shows it. `score` is how likely it answers the query, in [0, 1]."""

    id: str
    memory: Annotated[str, OF_MEMORY] = ""
    user_id: Annotated[str | None, OF_MEMORY] = None
    agent_id: str | None = None
    app_id: Annotated[str | None, OF_MEMORY] = None
    run_id: Annotated[str | None, OF_MEMORY] = None
    hash: Annotated[str, OF_MEMORY] = ""
    metadata: Annotated[dict[str, Any], OF_MEMORY] = {}
    categories: Annotated[list[str], OF_MEMORY] = []
    created_at: str = ""
    updated_at: str = ""
    expiration_date: str | None = None
    score: float | None = None
    event: str | None = None

    @classmethod
    def of(cls, agent: str, memory: Memory, fields: Sequence[str] | None = None, **more: Any) -> Self:
        """:param fields: The names of the fields to show in addition to the id; None for all."""
        shown = {
            "memory": memory.text,
            "user_id": user_of(memory),
            "agent_id": agent,
            "app_id": text_of(memory, APP_ID),
            "run_id": text_of(memory, RUN_ID),
            "hash": hashlib.md5(memory.text.encode(), usedforsecurity=False).hexdigest(),
            "metadata": shown_metadata(memory.metadata),
            "categories": list(memory.tags),
            "created_at": wire_time(memory.occurred_at),
            "updated_at": wire_time(memory.updated_at),
            "expiration_date": text_of(memory, EXPIRATION),
            **more,
        }
        kept = shown if fields is None else {name: value for name, value in shown.items() if name in fields}
        return cls(id=str(memory.id), **kept)


class Mem0Page(BaseModel):
    count: int
    next: str | None
    previous: str | None
    results: list[Mem0Memory]


class Mem0Results(BaseModel):
    results: list[Mem0Memory]


class Mem0Added(Mem0Results):
    """The stored memories; or, while a model extracts them, none and the job as `event_id`."""

    status: str | None = None
    event_id: str | None = None
    message: str | None = None


class Mem0Change(BaseModel):
    id: str
    memory_id: str
    old_memory: Annotated[str | None, OF_MEMORY]
    new_memory: Annotated[str | None, OF_MEMORY]
    event: str
    metadata: Annotated[dict[str, Any] | None, OF_MEMORY]
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, memory_id: int, number: int, entry: HistoryEntry) -> Self:
        event = "ADD" if number == 0 else "DELETE" if entry.action == "delete" else "UPDATE"
        metadata = _of_state(entry.after, "metadata")
        return cls(
            id=f"{memory_id}-{number + 1}",
            memory_id=str(memory_id),
            old_memory=_of_state(entry.before, "text"),
            new_memory=_of_state(entry.after, "text"),
            event=event,
            metadata=None if metadata is None else shown_metadata(metadata),
            created_at=wire_time(entry.at),
            updated_at=wire_time(entry.at),
        )


def _of_state(state: JsonObject | None, name: str) -> Any:
    return None if state is None else state.get(name)
