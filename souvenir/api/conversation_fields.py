"""The types of fields that requests about conversations share: who, where, and in which session."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from souvenir.api.caller import DOTS

MAX_NAME_CHARS = 200
MAX_SPEAKER_CHARS = 100
"""A speaker's name is embedded with what they say, and takes from the room for it."""


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
    _Name, Field(description="Whom the agent talks with: printable characters without `/`.", examples=["alice"])
]
MessageId = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS, description="A message's id, a UUID.")]
SpeakerName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_SPEAKER_CHARS),
    AfterValidator(printable),
    Field(description="The name of who says it; it is searched with the content.", examples=["Alice"]),
]
Title = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500),
    AfterValidator(printable),
    Field(description="What a person calls the session.", examples=["Colours"]),
]
