"""Provenance: the words in a conversation that an extracted fact or a memory came from."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from souvenir.api.fields import MemoryId, optional_wire_time
from souvenir.api.jobs import AllActors, JobId
from souvenir.learning.provenance import Provenance, provenance
from souvenir.learning.quoted_turns import EXCERPT_CHARS, FoundQuote
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, OF_BOTH, OF_CONVERSATION, REMEMBERED, Reader, RunningService
from souvenir.server.routing import Routes

routes = Routes("extraction")

_QUOTE = {
    "before": "Good morning! ",
    "words": "We moved billing to Postgres 17.",
    "after": " Remind me to tell Ana.",
    "role": "user",
    "speaker": "Ana",
    "at": "2025-04-02T00:00:00.000000+00:00",
    "session_id": "2025-04-02",
    "message_id": "0f8f5b0a-64a3-4c88-9d3b-0a6a5a0b8c11",
}


class QuoteRecord(BaseModel):
    """Words of a turn, with the text around them. Parts that are never learned from are left out."""

    before: Annotated[str, OF_BOTH] = Field(
        description=f"Up to {EXCERPT_CHARS} characters before the words; it begins with `…` if there is more."
    )
    words: Annotated[str, OF_BOTH] = Field(
        description="The quote; empty if it is unknown which words of the turn it is, such as after an edit."
    )
    after: Annotated[str, OF_BOTH] = Field(
        description=f"Up to {EXCERPT_CHARS} characters after the words; it ends with `…` if there is more."
    )
    role: str = Field(description="`user`, `assistant`, `tool`, `system` or `unknown`.", examples=["user"])
    speaker: Annotated[str | None, OF_CONVERSATION] = Field(description="The name of the speaker.")
    at: str | None = Field(description="The time of the turn.")
    session_id: Annotated[str | None, OF_CONVERSATION] = Field(description="The session of the conversation.")
    message_id: str | None = Field(
        description="The stored message of the turn; null if it was not stored, or the key may not read messages."
    )

    @classmethod
    def of(cls, quote: FoundQuote) -> QuoteRecord:
        return cls(
            before=quote.before,
            words=quote.words,
            after=quote.after,
            role=quote.role,
            speaker=quote.speaker,
            at=optional_wire_time(quote.at),
            session_id=quote.session,
            message_id=quote.message_id,
        )


class FactQuote(QuoteRecord):
    ordinal: int = Field(description="The ordinal of the fact in the result of the extraction.")


class QuotesResponse(BaseModel):
    job_id: str
    quotes: Annotated[list[FactQuote], OF_BOTH] = Field(
        description="In the order of the facts. Facts without a quote are left out, and so are all if the transcript "
        "is not kept any more.",
        examples=[[{"ordinal": 0, **_QUOTE}]],
    )


class ExtractionOrigin(BaseModel):
    """The extraction that stored a memory."""

    job_id: str
    kept: bool = Field(description="True if the caller can read it with `GET /memory/extract/{job_id}`.")
    ordinal: int | None = Field(description="The ordinal of the fact in its result; null if it is not kept.")


class ProvenanceResponse(BaseModel):
    """Where a memory was learned. Everything is empty for a memory that was not extracted."""

    memory_id: int
    extraction: ExtractionOrigin | None
    users: Annotated[list[str], OF_CONVERSATION] = Field(
        description="The users of the conversations; deleting one of them deletes the memory.", examples=[["ana"]]
    )
    sessions: Annotated[list[str], OF_CONVERSATION] = Field(
        description="The sessions of the conversations, likewise.", examples=[["2025-04-02"]]
    )
    quote: Annotated[QuoteRecord | None, OF_BOTH] = Field(
        description="The words that it came from: in the stored message, or in the transcript while the extraction is "
        "kept. Null if neither is known to the caller.",
        examples=[_QUOTE],
    )

    @classmethod
    def of(cls, memory_id: int, found: Provenance) -> ProvenanceResponse:
        origin = found.job_id and ExtractionOrigin(
            job_id=found.job_id, kept=found.ordinal is not None, ordinal=found.ordinal
        )
        return cls(
            memory_id=memory_id,
            extraction=origin or None,
            users=list(found.users),
            sessions=list(found.sessions),
            quote=None if found.quote is None else QuoteRecord.of(found.quote),
        )


@routes.get(
    "/memory/extract/{job_id}/quotes",
    summary="List the quotes of an extraction",
    cost=CostClass.SEARCH,
    access=NOTHING,
    sdk="extraction.quotes",
    errors=[404],
)
def list_quotes(job_id: JobId, scope: Reader, service: RunningService, all_actors: AllActors) -> QuotesResponse:
    """List the words that each fact of an extraction came from, in their turn, while the transcript is kept."""
    found = service.extraction.quotes(scope, job_id, all_actors=all_actors)
    quotes = [FactQuote(ordinal=ordinal, **QuoteRecord.of(quote).model_dump()) for ordinal, quote in found.items()]
    return QuotesResponse(job_id=job_id, quotes=quotes)


@routes.get(
    "/memory/{memory_id}/provenance",
    summary="Get the provenance of a memory",
    cost=CostClass.SEARCH,
    access=REMEMBERED,
    tag="read",
    sdk="memories.provenance",
    errors=[404],
)
def memory_provenance(
    memory_id: MemoryId, scope: Reader, service: RunningService, all_actors: AllActors
) -> ProvenanceResponse:
    """Get the extraction, the session and the words that a memory was learned from, as far as they are kept."""
    return ProvenanceResponse.of(
        memory_id, provenance(service.engine, service.extraction, scope, memory_id, all_actors=all_actors)
    )
