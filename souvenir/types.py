"""The values that the service passes around: frozen, without behaviour, known to every layer.

Times are aware datetimes in UTC. `similarity` is a cosine; every `score` is higher-is-better; `rank` counts from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

DEFAULT_NAMESPACE = "default"

FloatVector = NDArray[np.float32]
"""Shape (dim,) or (n, dim), float32; rows of embedded texts have length 1."""

JsonObject = Mapping[str, Any]


class Embedder(Protocol):
    """Turns text into vectors. Safe to call from many threads."""

    @property
    def model_id(self) -> str:
        """Names the vector space: vectors of two ids are never compared. Known without loading the model."""

    @property
    def dim(self) -> int: ...

    @property
    def ready(self) -> bool:
        """Whether the model is loaded, so that the next call does not wait for it."""

    @property
    def max_tokens(self) -> int:
        """Content tokens that one passage may hold."""

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        """Unit vectors (n, dim) of texts that each fit in one passage."""

    def embed_query(self, text: str) -> FloatVector:
        """The unit vector (dim,) of a question, of any length."""

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Character spans of the content tokens, in order."""

    def known_share(self, text: str) -> float:
        """The share of the content tokens that the model can make something of, in [0, 1]; 1 for a text of none."""


class LoadableEmbedder(Embedder, Protocol):
    """An embedder with a life that somebody owns. It loads on first use too; `close` ends it for good."""

    def load(self) -> None:
        """Make the next call quick; a second time does nothing.

        :raises EmbeddingUnavailable: If that fails; the sentence says what to do.
        """

    def close(self) -> None:
        """Fail the requests that wait; later ones raise `ServiceClosing`."""


class Reranker(Protocol):
    """Reads a question and a passage together. Safe to call from many threads."""

    def scores(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Sequence[float]:
        """How well each passage answers the question, in their order; higher is better, and any number may come.

        :raises TimeoutError: If not all are scored in that time; nothing is worked on any more soon after.
        """

    def close(self) -> None:
        """Give the model's memory back; later calls raise `ServiceClosing`."""


class Profile(IntEnum):
    """Which row of constants scores a passage; decided when it is stored, from what it is."""

    FACT = 0
    DOC = 1
    TALK = 2
    CHAT = 3


class PassageKind(StrEnum):
    """Which noun a passage belongs to; `owner_id` is an id of that noun. Each kind has an index of its own."""

    MEMORY = "memory"
    MESSAGE = "message"


class MessageRole(StrEnum):
    """Who says a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class Role(StrEnum):
    """What a key may do; each role may do all that the one before may."""

    READ_ONLY = "read-only"
    READ_WRITE = "read-write"
    ADMIN = "admin"


class OnDuplicate(StrEnum):
    """What an add does when the namespace already holds nearly the same text."""

    ADD = "add"
    SKIP = "skip"
    SUPERSEDE = "supersede"


class Fusion(StrEnum):
    """How the two arms' evidence becomes one score."""

    SUM = "sum"
    RRF = "rrf"


@dataclass(frozen=True, slots=True)
class Scope:
    """Who asks, of which namespace, and what of it they may see: everything outside does not exist for them.

    :param sources: Paths; only memories whose source equals one or lies below it can be seen or written. None: all.
    """

    namespace: str = DEFAULT_NAMESPACE
    actor: str = "anonymous"
    sources: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Link:
    from_id: int
    to_id: int
    type: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored text. `supersedes`, `previous_text` and `superseded_by` are read from its links."""

    id: int
    text: str
    source: str
    created_at: datetime
    updated_at: datetime
    metadata: JsonObject
    key: str | None = None
    document_at: datetime | None = None
    pinned: bool = False
    archived: bool = False
    links: tuple[Link, ...] = ()
    previous_text: str | None = None
    superseded_by: int | None = None

    @property
    def occurred_at(self) -> datetime:
        """When what it says happened: the caller's `document_at`, else when it was stored."""
        return self.document_at or self.created_at


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory somebody asks to store. `document_at` dates what the text says, if that is not now."""

    text: str
    source: str
    metadata: JsonObject = field(default_factory=dict)
    key: str | None = None
    document_at: datetime | None = None
    pinned: bool = False
    archived: bool = False


@dataclass(frozen=True, slots=True)
class MemoryPatch:
    """A change of some fields; `None` leaves a field as it is. A metadata value of `None` removes that key."""

    text: str | None = None
    document_at: datetime | None = None
    remove_document_at: bool = False
    source: str | None = None
    metadata: JsonObject | None = None
    pinned: bool | None = None
    archived: bool | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change of a memory: who made it, when, and its fields before and after; None where they are forgotten."""

    action: str
    actor: str
    at: datetime
    before: JsonObject | None
    after: JsonObject | None


@dataclass(frozen=True, slots=True)
class Origin:
    """What a memory was in the store that it comes from.

    :param id: Kept if this database never gave it out, nor one above it; else a new one is given.
    :param history: Stands in the place of a first entry of our own; None if it was not sent along.
    """

    created_at: datetime
    updated_at: datetime
    id: int | None = None
    history: tuple[HistoryEntry, ...] | None = None


class SourceMatch(StrEnum):
    """How a source pattern selects sources."""

    PREFIX = "prefix"
    PATH = "path"
    SUBSTRING = "substring"


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """Sources that begin with `pattern`, equal it or lie below it as a path, or contain it."""

    pattern: str
    match: SourceMatch = SourceMatch.PREFIX


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """Which messages may be found, by what their turns say; None lets all pass."""

    session_id: int | None = None
    not_session_id: int | None = None
    user_id: int | None = None
    role: MessageRole | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must satisfy; applied before top-k. `since` and `until` are inclusive.

    `sources` is a union; empty means any source. `metadata` holds keys and the exact JSON values they must have.
    `turn` is for messages, `without` holds ids of owners that must not be found. `visible` is what the scope may see,
    and only the engine sets it.
    """

    sources: tuple[SourceFilter, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    metadata: JsonObject = field(default_factory=dict)
    include_archived: bool = False
    turn: TurnFilter | None = None
    without: tuple[int, ...] = ()
    visible: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """What a caller can shift between the terms of a score; the defaults are the measured ones.

    :param vector: Share of the dense arm in [0, 1]; 0.7 leaves the profile's own constants as they are.
    :param recency: Added per hit, times ``0.5 ** (age / half-life)``.
    :param confidence: Added per hit, times its confidence.
    :param feedback: Share kept back for feedback in reciprocal rank fusion.
    :param role: Added to what the user said in a chat with an assistant; None: the measured weight, or 0 if the
        question asks for what the assistant said. Below 0 the assistant's messages come first.
    """

    vector: float = 0.7
    recency: float = 0.0
    recency_half_life_days: float = 30.0
    confidence: float = 0.0
    feedback: float = 0.1
    role: float | None = None


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search. `threshold` is the least cosine that a hit may have; `now` dates recency and confidence.

    `explain` adds the terms of each hit and what each arm found alone; `auto_intent` reads times in the text.
    """

    text: str
    top_k: int = 5
    hybrid: bool = True
    filters: Filters = field(default_factory=Filters)
    weights: Weights = field(default_factory=Weights)
    threshold: float | None = None
    now: datetime | None = None
    explain: bool = False
    auto_intent: bool = True


@dataclass(frozen=True, slots=True)
class TermMatch:
    """One query term in one passage: `weight` is BM25's saturation w_t, `idf` its ln form."""

    term: str
    idf: float
    tf: int
    weight: float


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """Everything that a hit's score is made of; `sum(parts.values())` is the score under the sum fusion.

    `rerank_score` is a cross-encoder's raw score, if one read the passage; with one, the sum holds under any fusion.
    """

    lexical: float
    dense: float
    similarity: float
    lexical_rank: int | None
    vector_rank: int | None
    rrf_score: float
    parts: Mapping[str, float]
    profile: Profile
    passage_id: int
    terms: tuple[TermMatch, ...] = ()
    rerank_score: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
    score: float
    parts: ScoreParts


class EvidenceLevel(StrEnum):
    """Whether what was found bears on the question."""

    STRONG = "strong"
    WEAK = "weak"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ArmCandidate:
    """What one arm alone found, for explain."""

    memory_id: int
    score: float


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """From `since` to `until`, both inclusive, None being open; or of every year a `month`, or a `day` of it."""

    since: datetime | None = None
    until: datetime | None = None
    month: int | None = None
    day: int | None = None


@dataclass(frozen=True, slots=True)
class TimeUse:
    """What a search made of the times in its text.

    :param phrases: The words that were read.
    :param boosted: What occurred in any of these has the score's part `period`.
    :param near: What occurred near to any of these days has its part `day`.
    :param filtered: Nothing outside of it was searched; None: the text filters nothing.
    :param recency: The weight of recency that the text asks for; None: the caller's.
    """

    phrases: tuple[str, ...]
    boosted: tuple[TimeSpan, ...] = ()
    near: tuple[TimeSpan, ...] = ()
    filtered: TimeSpan | None = None
    recency: float | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`degraded` names the arms that could not run, and `rerank`; empty means that nothing was left out.

    `time` is None where the text says nothing of when, or was not to be read for it.

    :param relevance: How likely it is that the hits answer the question, in [0, 1]; `signals` are what says so.
    """

    query: str
    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    relevance: float = 0.0
    evidence: EvidenceLevel = EvidenceLevel.NONE
    signals: Mapping[str, float] = field(default_factory=dict)
    candidates_considered: int = 0
    vector_candidates: tuple[ArmCandidate, ...] = ()
    lexical_candidates: tuple[ArmCandidate, ...] = ()
    filtered_by_source: int = 0
    repairs: Mapping[str, str] = field(default_factory=dict)
    time: TimeUse | None = None


class AddAction(StrEnum):
    ADDED = "added"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"


class SkipReason(StrEnum):
    """Why an add stored nothing: the text is there already, nearly there, or what it would replace is pinned."""

    IDENTICAL = "identical"
    DUPLICATE = "duplicate"
    PINNED_BLOCKER = "pinned_blocker"


@dataclass(frozen=True, slots=True)
class AddOutcome:
    """`blocker` is the stored memory that the text collided with, `similarity` the cosine between them."""

    action: AddAction
    id: int | None
    blocker: Memory | None = None
    similarity: float | None = None
    reason: SkipReason | None = None


@dataclass(frozen=True, slots=True)
class UpsertOutcome:
    id: int
    created: bool


@dataclass(frozen=True, slots=True)
class DeleteOutcome:
    deleted_ids: tuple[int, ...]
    missing_ids: tuple[int, ...] = ()
    skipped_pinned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SupersedeOutcome:
    old: Memory
    new_id: int


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    id: int
    archived: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Page:
    memories: tuple[Memory, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Stats:
    """`index_bytes` is what the loaded index of the namespace takes in memory."""

    memories: int
    passages: int
    dim: int
    model_id: str
    created_at: datetime | None
    changed_at: datetime | None
    index_bytes: int
    backups: int


@dataclass(frozen=True, slots=True)
class Readiness:
    """`index_count` counts memories that search can find, `record_count` those stored; unequal means trouble."""

    ready: bool
    status: str
    index_count: int
    record_count: int
