"""Where the score of every message that was found comes from."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.explain_models import Explanation, TimeReading
from souvenir.api.message_models import FOUND_EXAMPLE, FoundMessage
from souvenir.api.relevance_fields import EvidenceOfAnswer, RelevanceShare
from souvenir.api.search_models import ANSWER_EXAMPLE
from souvenir.conversation.messages import MessageHit, MessageSearch
from souvenir.types import Fusion

_EXAMPLE: dict[str, Any] = {
    "query": "What is my favuorite colour?",
    "results": [
        {
            **FOUND_EXAMPLE,
            "explanation": {
                "passage_id": 31,
                "profile": "chat",
                "similarity": 0.71,
                "dense": 0.66,
                "vector_rank": 1,
                "lexical": 0.382,
                "lexical_rank": 1,
                "terms": [{"term": "favourit", "idf": 1.95, "tf": 1, "weight": 0.382}],
                "parts": {"lexical": 0.382, "dense": 0.858, "role": 0.4},
                "rrf_score": 0.014754,
                "rerank_score": None,
            },
        }
    ],
    "count": 1,
    **ANSWER_EXAMPLE,
    "fusion": "sum",
    "candidates_considered": 41,
    "relevance_signals": {"cosine": 0.71, "known": 1.0, "covered": 0.382},
    "repairs": {"favuorite": "favourit"},
    "time": None,
}


class ExplainedMessage(FoundMessage):
    explanation: Explanation

    @classmethod
    def of_hit(cls, hit: MessageHit) -> Self:
        fields = FoundMessage.of_hit(hit).model_dump()
        return cls.model_validate({**fields, "explanation": Explanation.of(hit.parts)})


class ExplainMessagesResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    query: str
    results: list[ExplainedMessage] = Field(description="Best first.")
    count: int
    relevance: RelevanceShare
    evidence: EvidenceOfAnswer
    degraded: list[str] = Field(description="What of the search could not run, as in `/search`; empty if all did.")
    fusion: str = Field(description="`sum` or `rrf`, as the setting SEARCH_FUSION says.")
    candidates_considered: int
    relevance_signals: dict[str, float] = Field(
        description="What `relevance` is made of; docs/retrieval.md says what each is."
    )
    repairs: dict[str, str] = Field(description="Words of the query that nobody wrote, and what was read instead.")
    time: TimeReading | None = Field(description="Null: the query says nothing of when, or `auto_intent` is off.")

    @classmethod
    def of(cls, query: str, found: MessageSearch, fusion: Fusion) -> Self:
        hits = [ExplainedMessage.of_hit(hit) for hit in found.hits]
        return cls(
            query=query,
            results=hits,
            count=len(hits),
            relevance=found.relevance,
            evidence=found.evidence,
            degraded=list(found.degraded),
            fusion=fusion.value,
            candidates_considered=found.candidates_considered,
            relevance_signals={name: round(value, 6) for name, value in found.signals.items()},
            repairs=dict(found.repairs),
            time=None if found.time is None else TimeReading.of(found.time),
        )
