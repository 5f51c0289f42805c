"""Searches: queries, filters, results and their explanations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from souvenir.core.types.records import Fact, JsonObject, Memory, MessageRole, Profile, SourceFilter


class Fusion(StrEnum):
    """The combination of both arms' evidence into one score."""

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
    """Filters of messages by their place and speaker; None does not filter."""

    session_id: int | None = None
    not_session_id: int | None = None
    user_id: int | None = None
    role: MessageRole | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on hits; applied before top-k. `since` and `until` are inclusive.

    `sources` is a union; empty means any source. `metadata` holds keys and the exact JSON values they must have.
    `tags` are matched ignoring case: any of them, or with `all_tags` all. `turn` is for messages, `without` holds ids
    of excluded owners, and `within` those of the only memories to search. `visible` holds the paths visible to the
    scope, and only the engine sets it.
    """

    sources: tuple[SourceFilter, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    metadata: JsonObject = field(default_factory=dict)
    include_archived: bool = False
    turn: TurnFilter | None = None
    without: tuple[int, ...] = ()
    within: tuple[int, ...] | None = None
    visible: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    all_tags: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Filters and order of a listing: in insertion order, or with `newest_first` reversed.

    `tags` are matched as in `Filters`; None does not filter. With `max_id`, memories with greater ids are left out.
    """

    source: SourceFilter | None = None
    pinned: bool | None = None
    archived: bool | None = None
    tags: tuple[str, ...] = ()
    all_tags: bool = False
    newest_first: bool = False
    max_id: int | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a score's terms that a caller can set; the defaults are the measured ones.

    :param vector: Share of the dense arm in [0, 1]; 0.7 leaves the profile's own constants unchanged.
    :param recency: Added per hit, times ``0.5 ** (age / half-life)``.
    :param confidence: Added per hit, times its confidence.
    :param feedback: Share of its score that a memory gains or loses by feedback, times its balance of votes.
    :param role: Added to messages of the user in a chat with an assistant; None: the measured weight, or 0 if the query
        asks for what the assistant said. Below 0 the assistant's messages come first.
    """

    vector: float = 0.7
    recency: float = 0.0
    recency_half_life_days: float = 30.0
    confidence: float = 0.0
    feedback: float = 0.0
    role: float | None = None


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search. `now` is the reference of recency and confidence.

    `threshold` is the minimum cosine of a hit; in a hybrid search, of one that the words did not find. `min_score` is
    the minimum score of every hit.
    `explain` adds the terms of each hit and the results of each arm alone; `auto_intent` uses times in the text.
    `link_weight`, in [0, 1], is the share of its score that a hit passes to memories that a user linked with it; hybrid
    searches of memories only.

    :param hybrid: Both arms; False: the vectors' arm alone. :param words_only: With `hybrid`, the words' arm alone.
    """

    text: str
    top_k: int = 5
    hybrid: bool = True
    filters: Filters = field(default_factory=Filters)
    weights: Weights = field(default_factory=Weights)
    threshold: float | None = None
    min_score: float | None = None
    now: datetime | None = None
    explain: bool = False
    auto_intent: bool = True
    words_only: bool = False
    link_weight: float = 0.0


@dataclass(frozen=True, slots=True)
class TermMatch:
    """One query term in one passage: `weight` is BM25's saturation w_t, `idf` its ln form."""

    term: str
    idf: float
    tf: int
    weight: float


class ScoreParts(NamedTuple):
    """The score of a hit before its calibration, and its components; `sum(parts.values())` is `raw_score`.

    Under reciprocal rank fusion, `raw_score` is `rrf_score` with tags and feedback instead. `rerank_score` is a
    cross-encoder's raw score, if it scored the passage; the sum then holds under any fusion.
    """

    raw_score: float
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
    raw_score=0.0,
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
"""Parts of hits that were found without their text."""


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact that matches the query; its score is the probability that it answers by itself."""

    fact: Fact
    score: float


@dataclass(frozen=True, slots=True)
class LinkSupport:
    """The support of a hit by links of users.

    :param share: The score that it gets from them, in [0, 1]. :param via: The linked hits, best first.
    :param direct: Whether the search found it without the links.
    """

    share: float
    via: tuple[int, ...]
    direct: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """:param score: How likely it answers the query, in [0, 1]. :param facts: The found facts, best first.

    :param support: None: no user linked it with another hit, or links do not count.
    """

    memory: Memory
    score: float
    parts: ScoreParts
    facts: tuple[FoundFact, ...] = ()
    support: LinkSupport | None = None


class EvidenceLevel(StrEnum):
    """The mention of the query's subject: with `strong` it is mentioned, with `none` nothing seems to be about it.

    It does not tell that the query is answered: one about a mentioned subject has evidence, whatever it asks.
    """

    STRONG = "strong"
    WEAK = "weak"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ArmCandidate:
    """A result of one arm alone, for explain."""

    memory_id: int
    score: float


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """From `since` to `until`, both inclusive, None being open; or a `month`, or a `day` of it, of every year."""

    since: datetime | None = None
    until: datetime | None = None
    month: int | None = None
    day: int | None = None


@dataclass(frozen=True, slots=True)
class TimeUse:
    """The effect of the times in its text on a search.

    :param phrases: The recognised phrases.
    :param boosted: Periods whose passages have the score part `period`.
    :param near: Days whose neighbourhood has the score part `day`.
    :param filtered: The only period that was searched; None: the text filters nothing.
    :param recency: The weight of recency that the text asks for; None: the caller's.
    """

    phrases: tuple[str, ...]
    boosted: tuple[TimeSpan, ...] = ()
    near: tuple[TimeSpan, ...] = ()
    filtered: TimeSpan | None = None
    recency: float | None = None


@dataclass(frozen=True, slots=True)
class LinkUse:
    """The effect of links on a search, for explain.

    :param seeds: Ids of the hits whose links were followed. :param found: Memories linked with them that are no seeds.
    :param filtered: Those of them that the filters, `threshold` or `min_score` exclude. :param added: Those of them
        that are hits.
    """

    seeds: tuple[int, ...]
    found: int = 0
    filtered: int = 0
    added: int = 0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`degraded` names the arms that could not run, and `rerank`; empty means that the search was complete.

    `time` is None if the text names no time, or was not to be analysed for one, and `links` if none were followed, or
    nothing is explained.

    :param relevance: The share of queries with such `signals` that were answered in labelled data sets, in [0, 1]. A
        query about a mentioned subject without an answer is mostly not recognised.
    :param unheard: The share of the query's words, weighted by rarity, that no visible text contains.
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
    unheard: float = 0.0
    time: TimeUse | None = None
    links: LinkUse | None = None
