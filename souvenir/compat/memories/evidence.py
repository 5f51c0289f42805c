"""A search whose answer sorts its results into evidence: the current answer, what supports it, and what is older.

A packet is made from two searches of the same query: that of `/search`, and one with archived memories, in which
superseded ones are found. No language model reads them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, Field

from souvenir.api.fields import HitScore, wire_time
from souvenir.api.search import SearchRequest, SearchResponse
from souvenir.core.types import EvidenceLevel, Hit, SearchResult
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import (
    OF_MEMORY,
    SEARCHING,
    Reader,
    RunningService,
    most_found,
    result_limit,
)
from souvenir.server.routing import Routes

routes = Routes("search")

RELEVANT_SCORE, RELEVANT_SHARE = 0.1, 0.7
"""A result is relevant with this score, or this share of the best raw score: the probabilities of results that answer
equally well are small, since each is that of being the one. Of 10 such results after the first, 1 (locomo_facts) to 2
(plain_questions) answer the question themselves; of the others, 1 in 30."""

MEDIUM_SCORE, HIGH_SCORE = 0.2, 0.5
"""Minimum probability of the current answer: with 0.5 it is right rather than not."""

ARCHIVED_SEARCHED = 30
"""Results of the search with archived memories, since active ones are among them."""

MAX_ITEMS, MAX_TRAIL = 5, 10

_DATE_FIRST = re.compile(
    r"\b(?:latest|current(?:ly)?|now|recent(?:ly)?|changed|newest|today|yesterday)\b", re.IGNORECASE
)


_PREPOSITIONS = "after|at|before|during|from|in|on|since|until"


class Relation(StrEnum):
    CURRENT = "current"
    SUPPORTING = "supporting"
    OLDER = "older"
    ARCHIVED = "archived"
    DATED_UNRANKED = "dated_unranked"


class ConfidenceLevel(StrEnum):
    MISSING = "missing"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class EvidenceItem(BaseModel):
    id: int
    source: str = Field(examples=["claude-code/billing"])
    date: str = Field(
        description="`document_at`, or `created_at` if there is none.", examples=["2025-04-02T09:30:00.000000+00:00"]
    )
    text: Annotated[str, OF_MEMORY]
    relation: Relation = Field(
        description="`current`: the current answer; `supporting`: active, with a score of 0.1, or 70 % of the best raw "
        "score, or the successor of such a memory; `older`: superseded, or contradicted by a newer memory, or, if the "
        "query asks for the latest, of an earlier date; `archived`: archived without a "
        "successor; `dated_unranked`: a result that is probably about something else."
    )
    score: HitScore
    is_latest: bool = Field(description="False if another memory supersedes it.")
    archived: bool

    @classmethod
    def of(cls, hit: Hit, relation: Relation) -> EvidenceItem:
        memory = hit.memory
        return cls(
            id=memory.id,
            source=memory.source,
            date=wire_time(memory.occurred_at),
            text=memory.text,
            relation=relation,
            score=hit.score,
            is_latest=memory.superseded_by is None,
            archived=memory.archived,
        )


class EvidenceConfidence(BaseModel):
    level: ConfidenceLevel = Field(
        description="`high`: the subject of the query is mentioned (`evidence` is `strong`), the current answer has a "
        "score of 0.5 or more, and no memory contradicts it; `medium`: the subject is mentioned, and the score is 0.2 "
        "or more; `low`: there is an answer, but less evidence; `missing`: no active memory seems to answer."
    )
    reasons: list[str] = Field(description="Sentences.", examples=[["No memory seems to answer."]])


class EvidencePacket(BaseModel):
    current_answer: EvidenceItem | None = Field(
        description="The active memory that answers best; if the query asks for the latest, the newest relevant one. "
        "A newer memory that contradicts it replaces it."
    )
    supporting_memories: list[EvidenceItem] = Field(description=f"At most {MAX_ITEMS}.")
    older_evidence: list[EvidenceItem] = Field(description=f"At most {MAX_ITEMS}, newest first.")
    older_conflicting_memories: list[EvidenceItem] = Field(description="The same as `older_evidence`.")
    source_date_trail: list[EvidenceItem] = Field(
        description=f"All of these and the other results, newest first; at most {MAX_TRAIL}."
    )
    confidence: EvidenceConfidence
    follow_up_queries: list[str] = Field(
        description="Queries that may find more: without the time that the query names, or for the latest.",
        examples=[["latest which database does billing use"]],
    )


class EvidenceResponse(SearchResponse):
    evidence_packet: EvidencePacket


@dataclass(frozen=True, slots=True)
class Sorted:
    """The results of both searches by their relation to the query; `unranked` are the others."""

    current: Hit | None
    supporting: Sequence[Hit]
    older: Sequence[Hit]
    unranked: Sequence[Hit]
    contradicting: Sequence[int]

    @classmethod
    def of(cls, result: SearchResult, past: SearchResult, *, date_first: bool) -> Sorted:
        """:param past: The result of the search with archived memories."""
        best = max((hit.parts.raw_score for hit in (*result.hits, *past.hits)), default=0.0)
        active = [hit for hit in result.hits if _is_active(hit)]
        former = [hit for hit in past.hits if not _is_active(hit)]
        kept = [hit for hit in former if _is_relevant(hit, best, past.evidence)]
        successors = {hit.memory.superseded_by for hit in kept}
        relevant = [hit for hit in active if hit.memory.id in successors or _is_relevant(hit, best, result.evidence)]
        if date_first:
            relevant.sort(key=_date, reverse=True)
        current = relevant[0] if relevant else None
        contradicting = [hit for hit in active if current is not None and _contradict(hit, current)]
        if current is not None and contradicting:
            relevant += [hit for hit in contradicting if hit not in relevant]
            newest = max((current, *contradicting), key=_date)
            contradicting = [hit for hit in (current, *contradicting) if _contradict(hit, newest)]
            current = newest
        rest = [hit for hit in relevant if hit is not current]
        old = [
            hit
            for hit in rest
            if current is not None and _date(hit) < _date(current) and (date_first or hit in contradicting)
        ]
        supporting = [hit for hit in rest if hit not in old][:MAX_ITEMS]
        shown = {hit.memory.id for hit in (current, *supporting) if hit is not None}
        kept += [hit for hit in former if hit.memory.superseded_by in shown and hit not in kept]
        older = sorted([*old, *kept], key=_date, reverse=True)[:MAX_ITEMS]
        shown |= {hit.memory.id for hit in older}
        unranked = [hit for hit in result.hits if hit.memory.id not in shown]
        return cls(current, supporting, older, unranked, [hit.memory.id for hit in contradicting])


def packet_of(result: SearchResult, past: SearchResult) -> EvidencePacket:
    date_first = _DATE_FIRST.search(result.query) is not None
    found = Sorted.of(result, past, date_first=date_first)
    current = None if found.current is None else EvidenceItem.of(found.current, Relation.CURRENT)
    supporting = [EvidenceItem.of(hit, Relation.SUPPORTING) for hit in found.supporting]
    older = [EvidenceItem.of(hit, _relation_of_older(hit)) for hit in found.older]
    unranked = [EvidenceItem.of(hit, Relation.DATED_UNRANKED) for hit in found.unranked]
    trail = sorted([*([current] if current else []), *supporting, *older, *unranked], key=_item_date, reverse=True)
    confidence = _confidence(result, found)
    return EvidencePacket(
        current_answer=current,
        supporting_memories=supporting,
        older_evidence=older,
        older_conflicting_memories=older,
        source_date_trail=trail[:MAX_TRAIL],
        confidence=confidence,
        follow_up_queries=_follow_ups(result, found, confidence.level, date_first=date_first),
    )


def _confidence(result: SearchResult, found: Sorted) -> EvidenceConfidence:
    if found.current is None:
        level = ConfidenceLevel.MISSING
        archived, nothing = "Only archived or superseded memories seem to answer.", "No memory seems to answer."
        reasons = [archived if found.older else nothing]
    else:
        score = found.current.score
        is_strong = result.evidence is EvidenceLevel.STRONG
        reasons = [
            f"Memory {found.current.memory.id} answers with a probability of {score:.2f}.",
            "The subject of the query is mentioned." if is_strong else "The subject of the query may not be mentioned.",
        ]
        level = ConfidenceLevel.LOW
        if is_strong and score >= MEDIUM_SCORE:
            level = ConfidenceLevel.MEDIUM
        if is_strong and score >= HIGH_SCORE and not found.contradicting and not result.degraded:
            level = ConfidenceLevel.HIGH
        reasons += [f"Memory {memory_id} contradicts it." for memory_id in found.contradicting]
        reasons += [
            f"It supersedes memory {hit.memory.id}."
            for hit in found.older
            if hit.memory.superseded_by == found.current.memory.id
        ]
    reasons += [f"The search ran without {name}." for name in result.degraded]
    return EvidenceConfidence(level=level, reasons=reasons)


def _follow_ups(result: SearchResult, found: Sorted, level: ConfidenceLevel, *, date_first: bool) -> list[str]:
    """Return the query without its time if little was found, and one for the latest if some evidence is older."""
    queries: list[str] = []
    if level in (ConfidenceLevel.MISSING, ConfidenceLevel.LOW) and result.time is not None and result.time.phrases:
        phrases = "|".join(map(re.escape, result.time.phrases))
        timeless = re.sub(rf"(?:\b(?:{_PREPOSITIONS})\s+)?(?:{phrases})", " ", result.query, flags=re.IGNORECASE)
        queries.append(" ".join(timeless.split()))
    if found.older and not date_first:
        queries.append(f"latest {result.query}")
    return [query for query in queries if query]


def _is_relevant(hit: Hit, best: float, evidence: EvidenceLevel) -> bool:
    """:param best: The best raw score, of archived memories too."""
    if evidence is EvidenceLevel.NONE:
        return False
    return hit.score >= RELEVANT_SCORE or hit.parts.raw_score >= RELEVANT_SHARE * best


def _is_active(hit: Hit) -> bool:
    return not hit.memory.archived and hit.memory.superseded_by is None


def _contradict(one: Hit, other: Hit) -> bool:
    return one.memory.conflicts_with == other.memory.id or other.memory.conflicts_with == one.memory.id


def _relation_of_older(hit: Hit) -> Relation:
    is_archived = hit.memory.archived and hit.memory.superseded_by is None
    return Relation.ARCHIVED if is_archived else Relation.OLDER


def _date(hit: Hit) -> datetime:
    return hit.memory.occurred_at


def _item_date(item: EvidenceItem) -> str:
    return item.date


@routes.post(
    "/search/evidence",
    summary="Search for evidence",
    cost=CostClass.SEARCH,
    access=SEARCHING,
    sdk="memories.evidence",
    idempotent=True,
)
def search_evidence(body: SearchRequest, scope: Reader, service: RunningService, request: Request) -> EvidenceResponse:
    """Search like `/search`, and sort the results into a current answer, support and older evidence."""
    query = body.to_query(scope)
    query = replace(query, top_k=result_limit(request, query.top_k))
    result = past = service.engine.search(scope, query, body.as_of)
    if not body.include_archived and most_found(request) is None:
        with_archived = replace(query.filters, include_archived=True)
        wider = replace(query, filters=with_archived, top_k=max(query.top_k, ARCHIVED_SEARCHED))
        past = service.engine.search(scope, wider, body.as_of)
    service.searches.note(scope, query, result)
    response = SearchResponse.of(body, result)
    fields = {name: getattr(response, name) for name in response.model_fields_set}
    return EvidenceResponse.model_validate({**fields, "evidence_packet": packet_of(result, past)})
