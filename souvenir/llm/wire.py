"""What the wires of the vendors have in common: the question, the answer, and why there is none.

A wire sends one question and reads one answer. When to ask again, and what an answer says, is not its business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

from souvenir.llm.schema import JsonSchema

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Of an answer; the largest models write some hundred kilobytes."""


class Ending(Enum):
    """Why a model stopped."""

    DONE = "done"
    CUT = "cut"
    REFUSED = "refused"


class Mode(Enum):
    """What a server is asked to hold a model to."""

    SCHEMA = "schema"
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server takes, as far as it has said. It begins with everything, and forgets what was refused.

    :param temperature: Newer models take none.
    :param completion_tokens: `max_completion_tokens` (OpenAI) in the place of `max_tokens` (everybody else).
    :param settled: Whether the other one of the two was tried.
    """

    mode: Mode = Mode.SCHEMA
    temperature: bool = True
    completion_tokens: bool = False
    settled: bool = False

    def without(self, words: str) -> Dialect | None:
        """What is left when a server refuses a request in these words; None if they are about something else."""
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
class Turn:
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """:param turns: A user's, then by turns the model's and the user's."""

    system: str
    turns: tuple[Turn, ...]
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
    """What came is not what this API answers."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why nothing came. `status` is 0 where the server did not answer; `words` are for comparing and never shown."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    words: str = field(default="", repr=False)


class Wire(Protocol):
    """Safe to use from many threads."""

    dialect: Dialect
    """What it begins with."""

    errors: tuple[type[Exception], ...]
    """Everything that `send` raises."""

    def send(self, question: Question, dialect: Dialect, timeout_s: float) -> bytes:
        """The body of an answer."""
        ...

    def read(self, body: bytes) -> Answer:
        """:raises NoAnswer: If it is none."""
        ...

    def failure(self, error: Exception) -> Failure: ...


def envelope(body: bytes) -> dict[str, Any]:
    """The body as an object.

    :raises NoAnswer: If it is none.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise NoAnswer from None
    if not isinstance(content, dict):
        raise NoAnswer
    return content


def count(value: Any) -> int:
    """Tokens as a server counted them, 0 where it did not."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def text_of(content: Any) -> str:
    """A message's content: a string, a list of parts, or nothing.

    :raises NoAnswer: If it is something else.
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
