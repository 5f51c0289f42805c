"""A search: what is asked and filtered, and what was found and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from souvenir.core.types.records import Fact, JsonObject, Memory, MessageRole, Profile, SourceFilter


class Fusion(StrEnum):
    """How the two arms' evidence becomes one score."""

    SUM = "sum"
    RRF = "rrf"


class SearchStrategy(StrEnum):
    """The strategy of a search over an agent's messages and memories."""

    AUTO = "auto"
    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    CONCEPT = "concept"
    TIME = "time"


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
    `tags` are matched without case: any of them suffices, or `all_tags` are wanted. `turn` is for messages, `without`
    holds ids of owners that must not be found. `visible` is what the scope may see, and only the engine sets it.
    """

    sources: tuple[SourceFilter, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    metadata: JsonObject = field(default_factory=dict)
    include_archived: bool = False
    turn: TurnFilter | None = None
    without: tuple[int, ...] = ()
    visible: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    all_tags: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Which memories are listed, and in which order: that in which they were stored, or the other way round.

    `tags` are matched as in `Filters`; None lets all pass.
    """

    source: SourceFilter | None = None
    pinned: bool | None = None
    archived: bool | None = None
    tags: tuple[str, ...] = ()
    all_tags: bool = False
    newest_first: bool = False


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

    :param hybrid: Both arms; False: the vectors' arm alone. :param words_only: Of both the words' arm alone.
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
    words_only: bool = False


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


UNRANKED = ScoreParts(
    lexical=0.0,
    dense=0.0,
    similarity=0.0,
    lexical_rank=None,
    vector_rank=None,
    rrf_score=0.0,
    parts={},
    profile=Profile.DOC,
    passage_id=0,
)
"""Of what was found without a look at its text."""


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact that bears on the query; its score is that of its own passage."""

    fact: Fact
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """:param facts: Those of the memory that were found, best first."""

    memory: Memory
    score: float
    parts: ScoreParts
    facts: tuple[FoundFact, ...] = ()


class EvidenceLevel(StrEnum):
    """The relevance of the results to the query."""

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
