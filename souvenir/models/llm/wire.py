"""Questions to language models, their answers, and the protocol of a vendor's API.

A wire builds one request and parses one answer. Sending, retries and validation are done elsewhere.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from souvenir.models.llm.schema import JsonSchema

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Limit of an answer; the largest models write some hundred kilobytes."""


class Ending(Enum):
    """Why a model stopped."""

    DONE = "done"
    CUT = "cut"
    REFUSED = "refused"


class Mode(Enum):
    """How a server is asked to constrain the output."""

    SCHEMA = "schema"
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters that a server accepts: all at first, then without the rejected ones.

    :param temperature: Newer models reject it.
    :param completion_tokens: `max_completion_tokens` (OpenAI) instead of `max_tokens` (others).
    :param settled: True if the other of the two was tried.
    """

    mode: Mode = Mode.SCHEMA
    temperature: bool = True
    completion_tokens: bool = False
    settled: bool = False

    def without(self, words: str) -> Dialect | None:
        """Return the dialect without the parameter that this error rejects; None if the error has another cause."""
        if self.temperature and "temperature" in words:
            return replace(self, temperature=False)
        if "too large" in words:
            return None
        refused = "max_completion_tokens" if self.completion_tokens else "max_tokens"
        other = "max_tokens" if self.completion_tokens else "max_completion_tokens"
        if not self.settled and refused in words and (other in words or "unsupported" in words or "extra" in words):
            return replace(self, completion_tokens=not self.completion_tokens, settled=True)
        if self.mode is not Mode.TEXT and any(name in words for name in _OF_SCHEMAS):
            return replace(self, mode=Mode.JSON if self.mode is Mode.SCHEMA else Mode.TEXT)
        return None


_OF_SCHEMAS = (
    "response_format",
    "response format",
    "json_schema",
    "json schema",
    "json_object",
    "output_config",
    "output_format",
    "structured output",
    "input_schema",
    "tool_choice",
    "tools",
    "grammar",
    # Ollama before 0.5 took no schema.
    "chatrequest.format",
)


@dataclass(frozen=True, slots=True)
class ChatTurn:
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """:param turns: The user's turn, then alternately the model's and the user's."""

    system: str
    turns: tuple[ChatTurn, ...]
    schema: JsonSchema
    max_tokens: int

    @property
    def messages(self) -> list[dict[str, str]]:
        return [{"role": turn.role, "content": turn.text} for turn in self.turns]


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    ending: Ending
    input_tokens: int
    output_tokens: int
    model: str | None


class NoAnswer(Exception):
    """The body is no answer of this API."""


class Wire(Protocol):
    """The API of one vendor: builds requests and parses answers. Thread-safe."""

    dialect: Dialect
    """The fullest dialect, used first."""

    path: str
    headers: dict[str, str]

    def request(self, question: Question, dialect: Dialect) -> dict[str, Any]:
        """Return the JSON body of a request."""
        ...

    def read(self, body: bytes) -> Answer:
        """:raises NoAnswer: If the body is no answer of this API."""
        ...


def envelope(body: bytes) -> dict[str, Any]:
    """Parse the body as an object.

    :raises NoAnswer: If it is no object.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise NoAnswer from None
    if not isinstance(content, dict):
        raise NoAnswer
    return content


def count(value: Any) -> int:
    """Return a server's token count, 0 if it is missing."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def text_of(content: Any) -> str:
    """Return a message's content: a string, a list of parts, or nothing.

    :raises NoAnswer: If it is anything else.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise NoAnswer
    texts = [part.get("text", "") for part in content if part.get("type") in (None, "text", "output_text")]
    if not all(isinstance(text, str) for text in texts):
        raise NoAnswer
    return "".join(texts)
