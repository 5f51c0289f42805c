"""Fields that ask a reader whether the results of a search answer its query, and those of its verdict.

The verdict is returned as fields, or as headers where the response is a bare array.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Response
from pydantic import Field

from souvenir.conversations.verification import Answered, Verdict

MOST_DEADLINE_MS = 60_000

_ANSWERED = (
    "With `verify`: whether the results answer the query. `yes`: with the words of `answer_quote`; `no`: a complete "
    "search was read, and none of its results does; `unknown`: for the reason in `answer_reason`."
)
_QUOTE = "The words of a result that answer, copied from it, if `answered` is `yes`."
_REASON = "One sentence, if `answered` is `unknown`."

Verify = Annotated[
    bool,
    Field(
        description="Ask the reader, the configured language model (EXTRACT_PROVIDER) or else the cross-encoder "
        "(RERANK_MODEL), whether the results answer the query. It never makes a search fail: without a reader, or if "
        "it is down or late, `answered` is `unknown`."
    ),
]
DeadlineMs = Annotated[
    int | None,
    Field(
        ge=1,
        le=MOST_DEADLINE_MS,
        description="Milliseconds after which the response is due. Parts of the search that would end later are "
        "omitted and named in `degraded`: first the cross-encoder, then links and late interaction, and last the "
        "search by meaning; the search by words always runs. With `verify` the reader has the rest of the time; "
        "without a deadline it has 10 seconds.",
    ),
]

OptionalAnswered = Annotated[Answered | None, Field(description=_ANSWERED)]
AnswerQuote = Annotated[str | None, Field(description=_QUOTE, examples=["Alice leads the billing team."])]
AnswerReason = Annotated[str | None, Field(description=_REASON)]

ANSWERED_HEADER, QUOTE_HEADER, REASON_HEADER = "X-Search-Answered", "X-Search-Answer-Quote", "X-Search-Answer-Reason"
VERDICT_HEADERS = (
    (ANSWERED_HEADER, "With `verify`: `yes`, `no` or `unknown`, as `answered` of `/search`.", "string"),
    (QUOTE_HEADER, f"{_QUOTE} In UTF-8, percent-encoded.".replace("`answered`", "it"), "string"),
    (REASON_HEADER, f"{_REASON} Percent-encoded.".replace("`answered`", "it"), "string"),
)


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    return {"answered": verdict.answered, "answer_quote": verdict.quote, "answer_reason": verdict.reason}


def set_verdict(response: Response, verdict: Verdict) -> None:
    response.headers[ANSWERED_HEADER] = verdict.answered.value
    if verdict.quote is not None:
        response.headers[QUOTE_HEADER] = quote(verdict.quote)
    if verdict.reason is not None:
        response.headers[REASON_HEADER] = quote(verdict.reason)
