"""Operations of the section `search`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat
from souvenir_client.records.enums import TagMatch
from souvenir_client.records.search import ExplainResponse, SearchBatchResponse, SearchResponse
from souvenir_client.sync.transport import Transport


class MemoriesOfSearch:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def search(
        self,
        *,
        query: str,
        k: int | NotSent = NOT_SENT,
        hybrid: bool | NotSent = NOT_SENT,
        threshold: float | NotSent | None = NOT_SENT,
        vector_weight: float | NotSent = NOT_SENT,
        recency_weight: float | NotSent = NOT_SENT,
        recency_half_life_days: float | NotSent = NOT_SENT,
        confidence_weight: float | NotSent = NOT_SENT,
        feedback_weight: float | NotSent = NOT_SENT,
        graph_weight: float | NotSent = NOT_SENT,
        auto_intent: bool | NotSent = NOT_SENT,
        include_archived: bool | NotSent = NOT_SENT,
        source: str | NotSent = NOT_SENT,
        source_prefix: str | NotSent | None = NOT_SENT,
        source_boundary: bool | NotSent = NOT_SENT,
        source_prefixes: Sequence[str] | NotSent | None = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
        tags: Sequence[str] | NotSent = NOT_SENT,
        tag_match: TagMatch | NotSent = NOT_SENT,
        since: str | datetime | NotSent | None = NOT_SENT,
        until: str | datetime | NotSent | None = NOT_SENT,
        reference_date: str | datetime | NotSent | None = NOT_SENT,
        as_of: str | datetime | NotSent | None = NOT_SENT,
    ) -> SearchResponse:
        """Find the memories that answer a query best, by meaning and by words; all filters come before the choice.

        `POST /search`.
        """
        return self._transport.send(
            Call(
                "POST",
                "/search",
                {200: SearchResponse},
                body={
                    "query": query,
                    "k": k,
                    "hybrid": hybrid,
                    "threshold": threshold,
                    "vector_weight": vector_weight,
                    "recency_weight": recency_weight,
                    "recency_half_life_days": recency_half_life_days,
                    "confidence_weight": confidence_weight,
                    "feedback_weight": feedback_weight,
                    "graph_weight": graph_weight,
                    "auto_intent": auto_intent,
                    "include_archived": include_archived,
                    "source": source,
                    "source_prefix": source_prefix,
                    "source_boundary": source_boundary,
                    "source_prefixes": source_prefixes,
                    "metadata": metadata,
                    "tags": tags,
                    "tag_match": tag_match,
                    "since": since,
                    "until": until,
                    "reference_date": reference_date,
                    "as_of": as_of,
                },
                repeat=Repeat.SAFE,
            )
        )

    def explain(
        self,
        *,
        query: str,
        k: int | NotSent = NOT_SENT,
        hybrid: bool | NotSent = NOT_SENT,
        threshold: float | NotSent | None = NOT_SENT,
        vector_weight: float | NotSent = NOT_SENT,
        recency_weight: float | NotSent = NOT_SENT,
        recency_half_life_days: float | NotSent = NOT_SENT,
        confidence_weight: float | NotSent = NOT_SENT,
        feedback_weight: float | NotSent = NOT_SENT,
        graph_weight: float | NotSent = NOT_SENT,
        auto_intent: bool | NotSent = NOT_SENT,
        include_archived: bool | NotSent = NOT_SENT,
        source: str | NotSent = NOT_SENT,
        source_prefix: str | NotSent | None = NOT_SENT,
        source_boundary: bool | NotSent = NOT_SENT,
        source_prefixes: Sequence[str] | NotSent | None = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
        tags: Sequence[str] | NotSent = NOT_SENT,
        tag_match: TagMatch | NotSent = NOT_SENT,
        since: str | datetime | NotSent | None = NOT_SENT,
        until: str | datetime | NotSent | None = NOT_SENT,
        reference_date: str | datetime | NotSent | None = NOT_SENT,
        as_of: str | datetime | NotSent | None = NOT_SENT,
    ) -> ExplainResponse:
        """Search like `/search`, and show what each arm found and what each score is made of.

        `POST /search/explain`.
        """
        return self._transport.send(
            Call(
                "POST",
                "/search/explain",
                {200: ExplainResponse},
                body={
                    "query": query,
                    "k": k,
                    "hybrid": hybrid,
                    "threshold": threshold,
                    "vector_weight": vector_weight,
                    "recency_weight": recency_weight,
                    "recency_half_life_days": recency_half_life_days,
                    "confidence_weight": confidence_weight,
                    "feedback_weight": feedback_weight,
                    "graph_weight": graph_weight,
                    "auto_intent": auto_intent,
                    "include_archived": include_archived,
                    "source": source,
                    "source_prefix": source_prefix,
                    "source_boundary": source_boundary,
                    "source_prefixes": source_prefixes,
                    "metadata": metadata,
                    "tags": tags,
                    "tag_match": tag_match,
                    "since": since,
                    "until": until,
                    "reference_date": reference_date,
                    "as_of": as_of,
                },
                repeat=Repeat.SAFE,
            )
        )

    def search_batch(self, *, queries: Sequence[Mapping[str, Any]]) -> SearchBatchResponse:
        """Run up to 200 searches in one request. `POST /search/batch`."""
        return self._transport.send(
            Call("POST", "/search/batch", {200: SearchBatchResponse}, body={"queries": queries}, repeat=Repeat.SAFE)
        )
