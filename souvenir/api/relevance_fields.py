"""How an answer of a search says how likely it is one: as fields, and as headers where the answer is a bare array."""

from __future__ import annotations

from typing import Annotated

from fastapi import Response
from pydantic import Field, PlainSerializer

from souvenir.types import EvidenceLevel

RELEVANCE_HEADER, EVIDENCE_HEADER = "X-Search-Relevance", "X-Search-Evidence"
DECIMALS = 4

_RELEVANCE = "How likely it is that what was found answers the query, in [0, 1]; 0 if nothing was found."
_EVIDENCE = "The same in words: `strong`, `weak` or `none`."

RelevanceShare = Annotated[
    float,
    PlainSerializer(lambda value: round(value, DECIMALS), return_type=float),
    Field(ge=0.0, le=1.0, description=_RELEVANCE),
]
EvidenceOfAnswer = Annotated[EvidenceLevel, Field(description=_EVIDENCE)]

RELEVANCE_HEADERS = (RELEVANCE_HEADER, _RELEVANCE, "number"), (EVIDENCE_HEADER, _EVIDENCE, "string")
"""As the documentation has them."""


def set_relevance(response: Response, relevance: float, evidence: EvidenceLevel) -> None:
    response.headers[RELEVANCE_HEADER] = str(round(relevance, DECIMALS))
    response.headers[EVIDENCE_HEADER] = evidence.value
