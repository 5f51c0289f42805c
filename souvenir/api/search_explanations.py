"""Schemas of the explanations of search rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pydantic import BaseModel, Field

from souvenir.api.fields import EvidenceOfAnswer, RelevanceShare, UnheardShare, optional_wire_time
from souvenir.api.search import SearchHit, SearchRequest, Warnings, hit_fields, warning_fields
from souvenir.core.types import (
    ArmCandidate,
    Fusion,
    LinkUse,
    Memory,
    ScoreParts,
    SearchResult,
    TimeSpan,
    TimeUse,
    Weights,
)
from souvenir.retrieval.ranking import RRF_K, rrf_shares
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Admin, RunningService
from souvenir.server.routing import Routes

CANDIDATE_TEXT_CHARS = 200
"""Shown of a candidate's text."""


class Term(BaseModel):
    """The weight of a word of the query in the passage."""

    term: str = Field(description="The word in the form of the analyser.", examples=["favourit"])
    idf: float = Field(description="The inverse document frequency: ln((N - df + 0.5) / (df + 0.5)), at least 0.1.")
    tf: int = Field(description="The frequency in the passage.")
    weight: float = Field(description="The saturated frequency for this passage length (BM25).")


class Explanation(BaseModel):
    """The parts of a score before calibration, which determines the order."""

    passage_id: int = Field(description="The passage that scored best.")
    profile: str = Field(description="The scoring profile: `fact`, `doc`, `talk` or `chat`.", examples=["chat"])
    similarity: float = Field(description="Cosine similarity between query and passage.")
    dense: float = Field(description="Cosine similarity after subtracting the namespace's mean from both vectors.")
    vector_rank: int | None = Field(description="The rank by `dense`.")
    lexical: float = Field(description="The share of the query's words that the passage contains, weighted by rarity.")
    lexical_rank: int | None = Field(description="The rank by `lexical`; null without a common word.")
    terms: list[Term]
    raw_score: float = Field(
        description="The sum of `parts`; with the fusion `rrf` and no cross-encoder, `rrf_score` with tags and "
        "feedback."
    )
    parts: dict[str, float] = Field(description="The terms of the sum.")
    rrf_score: float
    rerank_score: float | None = Field(
        description="The score of the cross-encoder; null if it did not read the passage."
    )

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
            raw_score=parts.raw_score,
            parts=dict(parts.parts),
            rrf_score=parts.rrf_score,
            rerank_score=parts.rerank_score,
        )


class ExplainedHit(SearchHit):
    explanation: Explanation


class Candidate(BaseModel):
    """A candidate of one arm."""

    id: int
    text: str = Field(description=f"The first {CANDIDATE_TEXT_CHARS} characters.")
    score: float


class ScoringWeights(BaseModel):
    """The shares of the arms in `rrf_score`, from the weights of the request, and the weight of feedback."""

    vector: float
    bm25: float
    recency: float
    feedback: float = Field(description="A score is multiplied by 1 + this weight * the balance of votes.")
    confidence: float


class GraphUse(BaseModel):
    """The effect of links that users made on the search; that of concepts is none (docs/benchmarks.md)."""

    enabled: bool = Field(description="False with `graph_weight` 0 and with `hybrid` false.")
    graph_weight: float
    seeds: list[int] = Field(description="The ids of the memories that the query found, whose links were followed.")
    neighbors_found: int = Field(description="Number of memories that are linked with these and are none of them.")
    neighbors_filtered: int = Field(description="Those of them that filters, `threshold` or `min_score` exclude.")
    neighbors_added: int = Field(description="Those of them that are results.")
    ppr_iterations: int = Field(description="Steps along links: 1, or 0 if it is not enabled.")
    ppr_alpha: float = Field(description="Share of its score that a result passes on: `graph_weight`, or 0.")

    @classmethod
    def of(cls, request: SearchRequest, result: SearchResult) -> GraphUse:
        use, enabled = result.links or LinkUse(()), request.hybrid and request.graph_weight > 0
        return cls(
            enabled=enabled,
            graph_weight=request.graph_weight,
            seeds=list(use.seeds),
            neighbors_found=use.found,
            neighbors_filtered=use.filtered,
            neighbors_added=use.added,
            ppr_iterations=int(enabled),
            ppr_alpha=request.graph_weight if enabled else 0.0,
        )


class TimePeriod(BaseModel):
    """From `since` to `until`, or a month or a day of every year."""

    since: str | None = Field(default=None, description="Null: unbounded.")
    until: str | None = Field(default=None, description="Inclusive. Null: unbounded.")
    month: int | None = None
    day: int | None = None

    @classmethod
    def of(cls, span: TimeSpan) -> TimePeriod:
        since, until = optional_wire_time(span.since), optional_wire_time(span.until)
        return cls(since=since, until=until, month=span.month, day=span.day)


class TimeReading(BaseModel):
    """The interpretation of times in the query."""

    phrases: list[str] = Field(description="The words that were interpreted.", examples=[["May 2026"]])
    boosted: list[TimePeriod] = Field(description="Results within any of these get the score part `period`.")
    near: list[TimePeriod] = Field(description="Results close to any of these days get the score part `day`.")
    filtered: TimePeriod | None = Field(description="The time filter. Null: no filter.")
    recency_weight: float | None = Field(description="Set if the query asks for the latest. Null: not set.")

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
    fusion: str = Field(description="`sum` or `rrf`, from the setting SEARCH_FUSION.", examples=["sum"])
    candidates_considered: int
    vector_candidates: list[Candidate] = Field(description="Candidates of the vector arm, best first.")
    bm25_candidates: list[Candidate] = Field(description="Candidates of the lexical arm, best first.")
    filtered_by_source: int
    filtered_by_auth: int
    scoring_weights: ScoringWeights
    rrf_k: int
    relevance_signals: dict[str, float] = Field(
        description="The features of `relevance`; docs/retrieval.md describes each of them."
    )
    repairs: dict[str, str] = Field(description="Words of the query that occur in no text, and their corrections.")
    unheard: UnheardShare
    time: TimeReading | None = Field(description="Null if the query names no time, or `auto_intent` is off.")
    graph: GraphUse


class ExplainResponse(BaseModel):
    query: str
    results: list[ExplainedHit]
    count: int
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(examples=[[]])
    warnings: Warnings = []
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
            **warning_fields(request),
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
        scoring_weights=ScoringWeights(**rrf_shares(_weights(request, result)), feedback=request.feedback_weight),
        rrf_k=RRF_K,
        relevance_signals={name: round(value, 6) for name, value in result.signals.items()},
        repairs=dict(result.repairs),
        unheard=result.unheard,
        time=None if result.time is None else TimeReading.of(result.time),
        graph=GraphUse.of(request, result),
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


routes = Routes("search")


@routes.post(
    "/search/explain",
    summary="Explain a search",
    cost=CostClass.SEARCH,
    sdk="memories.explain",
    idempotent=True,
)
def explain_search(body: SearchRequest, scope: Admin, service: RunningService) -> ExplainResponse:
    """Search like `/search`, and show the candidates of each arm and the parts of each score."""
    result = service.engine.search(scope, body.to_query(scope, explain=True), body.as_of)
    ids = [item.memory_id for item in (*result.vector_candidates, *result.lexical_candidates)]
    found = service.engine.get(scope, ids, body.as_of)
    return ExplainResponse.of(body, result, found, service.settings.search_fusion)
