"""Where the score of every result comes from, and what each arm found alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import optional_wire_time
from souvenir.api.relevance_fields import EvidenceOfAnswer, RelevanceShare
from souvenir.api.search_models import ANSWER_EXAMPLE, HIT_EXAMPLE, SearchHit, SearchRequest, hit_fields
from souvenir.search.ranking import RRF_K, rrf_shares
from souvenir.types import ArmCandidate, Fusion, Memory, ScoreParts, SearchResult, TimeSpan, TimeUse, Weights

CANDIDATE_TEXT_CHARS = 200
"""Shown of a candidate's text."""

_EXPLANATION_EXAMPLE: dict[str, Any] = {
    "passage_id": 31,
    "profile": "fact",
    "similarity": 0.612044,
    "dense": 0.58011,
    "vector_rank": 1,
    "lexical": 0.728771,
    "lexical_rank": 1,
    "terms": [{"term": "bill", "idf": 5.11, "tf": 1, "weight": 1.07}],
    "parts": {"lexical": 0.728771, "dense": 0.754142},
    "rrf_score": 0.014754,
    "rerank_score": None,
}


class Term(BaseModel):
    """What one word of the query counts for in the passage."""

    term: str = Field(description="As the analyser writes it.")
    idf: float = Field(description="How rare it is: ln((N - df + 0.5) / (df + 0.5)), at least 0.1.")
    tf: int = Field(description="How often the passage has it.")
    weight: float = Field(description="What that frequency is worth in a passage of this length (BM25).")


class Explanation(BaseModel):
    """Every part of a score: their sum, or `rrf_score` under the fusion `rrf` where no cross-encoder ranked."""

    passage_id: int = Field(description="The passage that scored best.")
    profile: str = Field(description="The row of constants that scored it: `fact`, `doc`, `talk` or `chat`.")
    similarity: float = Field(description="Cosine between query and passage.")
    dense: float = Field(description="That cosine with the namespace's mean taken off both.")
    vector_rank: int | None = Field(description="Place among all by `dense`.")
    lexical: float = Field(description="Share of the query's words that the passage answers, weighted by rarity.")
    lexical_rank: int | None = Field(description="Place among all by `lexical`; null without a common word.")
    terms: list[Term]
    parts: dict[str, float] = Field(description="The terms of the sum.")
    rrf_score: float
    rerank_score: float | None = Field(description="The cross-encoder's score; null if none read the passage.")

    @classmethod
    def of(cls, parts: ScoreParts) -> Explanation:
        return cls(
            passage_id=parts.passage_id,
            profile=parts.profile.name.lower(),
            similarity=parts.similarity,
            dense=parts.dense,
            vector_rank=parts.vector_rank,
            lexical=parts.lexical,
            lexical_rank=parts.lexical_rank,
            terms=[Term(term=match.term, idf=match.idf, tf=match.tf, weight=match.weight) for match in parts.terms],
            parts=dict(parts.parts),
            rrf_score=parts.rrf_score,
            rerank_score=parts.rerank_score,
        )


class ExplainedHit(SearchHit):
    explanation: Explanation


class Candidate(BaseModel):
    """What one arm alone found."""

    id: int
    text: str = Field(description=f"At most {CANDIDATE_TEXT_CHARS} characters of it.")
    score: float


class ScoringWeights(BaseModel):
    """The shares of the ranks in `rrf_score`, from the weights of the request."""

    vector: float
    bm25: float
    recency: float
    feedback: float
    confidence: float


class GraphUse(BaseModel):
    """What the graph did, which is nothing: measured, it would find no more (docs/benchmarks.md)."""

    enabled: bool
    graph_weight: float
    seeds: int
    neighbors_found: int
    neighbors_filtered: int
    neighbors_added: int
    ppr_iterations: int
    ppr_alpha: float


class TimePeriod(BaseModel):
    """From `since` to `until`, or a month or a day of every year."""

    since: str | None = Field(default=None, description="Null: open.")
    until: str | None = Field(default=None, description="Inclusive. Null: open.")
    month: int | None = None
    day: int | None = None

    @classmethod
    def of(cls, span: TimeSpan) -> TimePeriod:
        since, until = optional_wire_time(span.since), optional_wire_time(span.until)
        return cls(since=since, until=until, month=span.month, day=span.day)


class TimeReading(BaseModel):
    """What was made of the times that the query names."""

    phrases: list[str] = Field(description="The words that were read.")
    boosted: list[TimePeriod] = Field(description="What occurred in any of these has the part `period`.")
    near: list[TimePeriod] = Field(description="What occurred near to any of these days has the part `day`.")
    filtered: TimePeriod | None = Field(description="Nothing outside of it was searched. Null: no filter.")
    recency_weight: float | None = Field(description="Set because the query asks for the latest. Null: not set.")

    @classmethod
    def of(cls, use: TimeUse) -> TimeReading:
        return cls(
            phrases=list(use.phrases),
            boosted=[TimePeriod.of(span) for span in use.boosted],
            near=[TimePeriod.of(span) for span in use.near],
            filtered=None if use.filtered is None else TimePeriod.of(use.filtered),
            recency_weight=use.recency,
        )


class SearchExplanation(BaseModel):
    fusion: str = Field(description="`sum` or `rrf`, as the setting SEARCH_FUSION says.")
    candidates_considered: int
    vector_candidates: list[Candidate] = Field(description="What meaning alone found, best first.")
    bm25_candidates: list[Candidate] = Field(description="What words alone found, best first.")
    filtered_by_source: int
    filtered_by_auth: int
    scoring_weights: ScoringWeights
    rrf_k: int
    relevance_signals: dict[str, float] = Field(
        description="What `relevance` is made of; docs/retrieval.md says what each is."
    )
    repairs: dict[str, str] = Field(description="Words of the query that nobody wrote, and what was read instead.")
    time: TimeReading | None = Field(description="Null: the query says nothing of when, or `auto_intent` is off.")
    graph: GraphUse


_EXPLAIN_EXAMPLE: dict[str, Any] = {
    "fusion": "sum",
    "candidates_considered": 41,
    "vector_candidates": [{"id": 12, "text": "The billing service moves to Postgres 17 in May.", "score": 0.612044}],
    "bm25_candidates": [{"id": 12, "text": "The billing service moves to Postgres 17 in May.", "score": 0.728771}],
    "filtered_by_source": 0,
    "filtered_by_auth": 0,
    "scoring_weights": {"vector": 0.63, "bm25": 0.27, "recency": 0.0, "feedback": 0.1, "confidence": 0.0},
    "rrf_k": RRF_K,
    "relevance_signals": {"cosine": 0.612044, "unheard": 0.0, "covered": 0.728771, "fact": 0.58011},
    "repairs": {"bililng": "bill"},
    "time": {
        "phrases": ["May 2026"],
        "boosted": [{"since": "2026-05-01T00:00:00.000000+00:00", "until": "2026-05-31T23:59:59.999999+00:00"}],
        "near": [],
        "filtered": None,
        "recency_weight": None,
    },
    "graph": {
        "enabled": False,
        "graph_weight": 0.1,
        "seeds": 0,
        "neighbors_found": 0,
        "neighbors_filtered": 0,
        "neighbors_added": 0,
        "ppr_iterations": 0,
        "ppr_alpha": 0.0,
    },
}


class ExplainResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "which database did bililng use in May 2026",
                    "results": [{**HIT_EXAMPLE, "explanation": _EXPLANATION_EXAMPLE}],
                    "count": 1,
                    **ANSWER_EXAMPLE,
                    "explain": _EXPLAIN_EXAMPLE,
                }
            ]
        }
    )

    query: str
    results: list[ExplainedHit]
    count: int
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str]
    explain: SearchExplanation

    @classmethod
    def of(
        cls, request: SearchRequest, result: SearchResult, candidates: Mapping[int, Memory], fusion: Fusion
    ) -> ExplainResponse:
        """:param candidates: The memories that the arms found, by id."""
        hits = [
            ExplainedHit.model_validate({**fields, "explanation": Explanation.of(hit.parts)})
            for fields, hit in zip(hit_fields(request, result), result.hits, strict=True)
        ]
        return cls(
            query=result.query,
            results=hits,
            count=len(hits),
            relevance=result.relevance,
            evidence=result.evidence,
            degraded=list(result.degraded),
            explain=_search_explanation(request, result, candidates, fusion),
        )


def _search_explanation(
    request: SearchRequest, result: SearchResult, candidates: Mapping[int, Memory], fusion: Fusion
) -> SearchExplanation:
    return SearchExplanation(
        fusion=fusion.value,
        candidates_considered=result.candidates_considered,
        vector_candidates=_candidates(result.vector_candidates, candidates),
        bm25_candidates=_candidates(result.lexical_candidates, candidates),
        filtered_by_source=result.filtered_by_source,
        filtered_by_auth=0,
        scoring_weights=ScoringWeights(**rrf_shares(_weights(request, result))),
        rrf_k=RRF_K,
        relevance_signals={name: round(value, 6) for name, value in result.signals.items()},
        repairs=dict(result.repairs),
        time=None if result.time is None else TimeReading.of(result.time),
        graph=GraphUse(
            enabled=False,
            graph_weight=request.graph_weight,
            seeds=0,
            neighbors_found=0,
            neighbors_filtered=0,
            neighbors_added=0,
            ppr_iterations=0,
            ppr_alpha=0.0,
        ),
    )


def _weights(request: SearchRequest, result: SearchResult) -> Weights:
    asked = None if result.time is None else result.time.recency
    return request.weights() if asked is None else replace(request.weights(), recency=asked)


def _candidates(found: tuple[ArmCandidate, ...], memories: Mapping[int, Memory]) -> list[Candidate]:
    """Those that still exist: one may have been deleted since it was found."""
    return [
        Candidate(
            id=candidate.memory_id,
            text=memories[candidate.memory_id].text[:CANDIDATE_TEXT_CHARS],
            score=round(candidate.score, 6),
        )
        for candidate in found
        if candidate.memory_id in memories
    ]
