"""A question to a model and its typed answer. A shape is a pydantic model: what does not fit it is no answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

Shape = TypeVar("Shape", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked.

    :param name: What the prompt is for; a closed set, fit for logs.
    :param version: Of its wording, which is stored with what comes of it.
    :param system: What holds for every question of this name.
    :param user: What this question is about. Together they never go into a log.
    """

    name: str
    version: str
    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What answers took. `cost_usd` is None where the price of a model is not known here."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    def __add__(self, other: Usage) -> Usage:
        """The sum; its cost is known if both are."""
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


NO_USAGE = Usage(0, 0, 0.0)
"""Of no answer: the start of a sum."""


@dataclass(frozen=True, slots=True)
class Generated(Generic[Shape]):
    """A valid answer.

    :param usage: Of all attempts, also of those that gave nothing usable.
    :param model: The one that answered, by the vendor's name of it.
    :param attempts: Requests that were sent.
    :param repaired: Whether the model had to be told what was wrong with its first answer.
    """

    value: Shape
    usage: Usage
    model: str
    attempts: int
    repaired: bool
