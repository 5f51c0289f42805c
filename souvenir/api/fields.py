"""Field types that several requests share, and the relevance of search results.

Relevance is returned as fields, or as headers where the response is a bare array.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Self

from fastapi import Response
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)

from souvenir.core.labels import MAX_SOURCE_CHARS as MAX_SOURCE_CHARS
from souvenir.core.labels import MAX_TAG_CHARS, MAX_TAGS
from souvenir.core.text import is_blank
from souvenir.core.timestamps import utc_now
from souvenir.core.types import EvidenceLevel
from souvenir.memories.fact_splitting import MAX_GIVEN_FACT_CHARS, MAX_GIVEN_FACTS
from souvenir.server.request_guards import DOTS


class TagMatch(StrEnum):
    """The match of tags: any or all of them."""

    ANY = "any"
    ALL = "all"


MAX_TEXT_CHARS = 50_000
MAX_ID = 2**53 - 1
"""The largest integer that every JSON client reads exactly; the ids of the store stay far below."""


def without_nul(text: str) -> str:
    """NUL ends a string in parts of SQLite, and no text holds one on purpose."""
    if "\0" in text:
        raise ValueError("a text must not hold NUL characters")
    return text


def not_blank(text: str) -> str:
    """:raises ValueError: If the text has no visible characters, for example only spaces or zero-width characters."""
    if is_blank(text):
        raise ValueError("the text is blank; give at least one visible character")
    return text


Clean = AfterValidator(without_nul)

Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_CHARS), Clean]
StoredText = Annotated[Text, AfterValidator(not_blank)]
Source = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE_CHARS), Clean]
OptionalSource = Annotated[str, StringConstraints(max_length=MAX_SOURCE_CHARS), Clean]
Key = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE_CHARS), Clean]
MemoryId = Annotated[int, Field(ge=0, le=MAX_ID, description="The id of a memory.", examples=[1])]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TAG_CHARS), Clean]
TagList = Annotated[list[Tag], Field(max_length=MAX_TAGS)]
FactText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_GIVEN_FACT_CHARS), Clean]
FactList = Annotated[list[FactText], Field(max_length=MAX_GIVEN_FACTS)]
Ids = Annotated[list[MemoryId], Field(min_length=1, max_length=1000, description="Ids of memories.")]


_PLUS_AS_SPACE = re.compile(r"(\d:\d\d(?::\d\d(?:\.\d+)?)?) (\d\d:?\d\d)$")
"""A time with the offset that a query turns `+` in front of into a space."""


def moment(text: str) -> datetime:
    """An ISO-8601 date or time in UTC; one without an offset is UTC already.

    :raises ValueError: If it is unreadable.
    """
    try:
        read = datetime.fromisoformat(_PLUS_AS_SPACE.sub(r"\1+\2", text.strip().upper()))
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError("not an ISO-8601 date or time such as 2023-05-08 or 2023-05-08T17:30:00Z") from error


def end_moment(text: str) -> datetime:
    """Like `moment`, but a date alone means its last microsecond."""
    try:
        day = date.fromisoformat(text.strip().upper())
    except ValueError:
        return moment(text)
    return datetime.combine(day, time.max, UTC)


def _text_of_moment(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 50:
        raise ValueError("takes a text of at most 50 characters")
    return value


def _moment_schema(description: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "maxLength": 50, "description": description, "examples": ["2023-05-08"]})


Moment = Annotated[
    datetime,
    BeforeValidator(lambda value: moment(_text_of_moment(value))),
    _moment_schema("ISO-8601; without an offset it is UTC."),
]
EndMoment = Annotated[
    datetime,
    BeforeValidator(lambda value: end_moment(_text_of_moment(value))),
    _moment_schema("ISO-8601; without an offset it is UTC, and a date alone includes that whole day."),
]
EMPTY_IS_MISSING = BeforeValidator(lambda value: None if value == "" else value)
"""Reads an empty text as null, for fields that clients send empty."""


AS_OF = (
    "Read the state at this time: ISO-8601, UTC without an offset; a future time means now. Memories deleted since "
    "then are not included."
)

AsOf = Annotated[
    datetime, BeforeValidator(lambda value: min(moment(_text_of_moment(value)), utc_now())), _moment_schema(AS_OF)
]
"""A moment that is over."""


def wire_time(at: datetime) -> str:
    """UTC with microseconds and `+00:00`, always of the same length, so that texts sort like times."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def optional_wire_time(at: datetime | None) -> str | None:
    return None if at is None else wire_time(at)


class Record(BaseModel):
    """A part of an answer: its fields are attributes of a value of the services, by name or by validation alias."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, value: object) -> Self:
        return cls.model_validate(value)


WireTime = Annotated[str, BeforeValidator(wire_time)]
OptionalWireTime = Annotated[str | None, BeforeValidator(optional_wire_time)]
Rounded = Annotated[float, AfterValidator(partial(round, ndigits=6))]
"""A computed number, equal on every machine."""


def source_path(path: str) -> str:
    """:raises ValueError: If nothing is named but slashes."""
    stripped = without_trailing_slash(path)
    if not stripped:
        raise ValueError("a source path must name something before its slash")
    return stripped


def without_trailing_slash(path: str) -> str:
    """A source path as a filter reads it: `proj/`, `proj/*` and `proj` are one."""
    return path.removesuffix("/*").rstrip("/")


SourcePath = Annotated[Source, AfterValidator(source_path)]


MAX_NAME_CHARS = 200
MAX_SPEAKER_CHARS = 100
"""A speaker's name is embedded with the content and uses part of the model's window."""


def printable(text: str) -> str:
    """:raises ValueError: If it holds line ends or other characters that cannot be seen."""
    if not text.isprintable():
        raise ValueError("takes printable characters only")
    return text


def without_slash(text: str) -> str:
    """:raises ValueError: If it cannot be one part of a path."""
    if "/" in text or text in DOTS:
        raise ValueError("takes no / and is not . or .., so that it can be part of a path")
    return text


_Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_NAME_CHARS),
    AfterValidator(printable),
    AfterValidator(without_slash),
]

SessionId = Annotated[
    _Name, Field(description="A session's id: printable characters without `/`.", examples=["2025-04-02"])
]
UserName = Annotated[
    _Name,
    Field(description="The user that the agent talks with: printable characters without `/`.", examples=["alice"]),
]
MessageId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME_CHARS,
        description="A message's id, a UUID.",
        examples=["2f6c9e0a-7a55-4f0a-8f0e-6f1d2c3b4a59"],
    ),
]
SpeakerName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_SPEAKER_CHARS),
    AfterValidator(printable),
    Field(description="The name of the speaker; searched together with the content.", examples=["Alice"]),
]
Title = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500),
    AfterValidator(printable),
    Field(description="The title of the session.", examples=["Colours"]),
]


RELEVANCE_HEADER, EVIDENCE_HEADER = "X-Search-Relevance", "X-Search-Evidence"
DECIMALS = 4

_RELEVANCE = (
    "The share of similar queries that were answered in labelled data sets, in [0, 1]; 0 without results. It tells "
    "whether the subject is mentioned, and mostly not whether exactly this is answered."
)
_EVIDENCE = (
    "The relevance in words: `strong` (0.6 or more): the subject of the query is mentioned in the store, which does "
    "not mean that the query is answered; `weak` (0.25 or more): it may be mentioned; `none`: nothing in the store "
    "seems to be about it."
)

RelevanceShare = Annotated[
    float,
    PlainSerializer(lambda value: round(value, DECIMALS), return_type=float),
    Field(ge=0.0, le=1.0, description=_RELEVANCE),
]
UnheardShare = Annotated[
    float,
    PlainSerializer(lambda value: round(value, DECIMALS), return_type=float),
    Field(
        ge=0.0,
        le=1.0,
        description="The share of the query's words, weighted by rarity, that no text contains. It is part of the "
        "divisor of the lexical score.",
    ),
]
HitScore = Annotated[
    float,
    Field(
        ge=0.0,
        le=1.0,
        description="The probability that this result answers the query, in [0, 1], as calibrated on labelled data "
        "sets. It never exceeds that of the result before it.",
        examples=[0.62],
    ),
]
MinScore = Annotated[
    float | None,
    Field(ge=0.0, le=1.0, description="Minimum `score` of a result. docs/retrieval.md shows the effect of each value."),
]
EvidenceOfAnswer = Annotated[EvidenceLevel, Field(description=_EVIDENCE)]

RELEVANCE_HEADERS = (RELEVANCE_HEADER, _RELEVANCE, "number"), (EVIDENCE_HEADER, _EVIDENCE, "string")
"""As the documentation has them."""


def set_relevance(response: Response, relevance: float, evidence: EvidenceLevel) -> None:
    response.headers[RELEVANCE_HEADER] = str(round(relevance, DECIMALS))
    response.headers[EVIDENCE_HEADER] = evidence.value
