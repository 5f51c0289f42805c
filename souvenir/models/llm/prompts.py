"""Prompts, typed answers, and their usage and cost.

A shape is a pydantic model; an answer that does not fit it is rejected. Prompt files begin with a line `version: N`,
which increases with every change and is stored with the results.

Prices are from the vendors' public lists of early 2026, without discounts for caching or batches. They show roughly
what an extraction costs and are no bill. The cost of an unlisted model is unknown, not 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

Shape = TypeVar("Shape", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt.

    :param name: What the prompt is for; a closed set, fit for logs.
    :param version: Version of the wording; stored with the results.
    :param system: Instructions, the same for every question of this name.
    :param user: The subject of this question. Neither is ever logged.
    """

    name: str
    version: str
    system: str
    user: str


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens and cost of answers. `cost_usd` is None if the price of the model is unknown."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    def __add__(self, other: TokenUsage) -> TokenUsage:
        """The sum; its cost is known if both are."""
        known = self.cost_usd is not None and other.cost_usd is not None
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


NO_USAGE = TokenUsage(0, 0, 0.0)
"""The neutral element of addition."""


@dataclass(frozen=True, slots=True)
class Generated(Generic[Shape]):
    """A valid answer.

    :param usage: Usage of all attempts, including failed ones.
    :param model: The vendor's name of the model that answered.
    :param attempts: Number of requests sent.
    :param repaired: True if the first answer did not fit and a repair was requested.
    """

    value: Shape
    usage: TokenUsage
    model: str
    attempts: int
    repaired: bool


_VERSION = "version: "


def prompt_of(folder: Path, name: str, user: str, *, further: str = "") -> Prompt:
    """:param user: The subject of the question. :param further: Text appended to the instructions."""
    version, system = _read(folder / f"{name}.md")
    return Prompt(name, version, f"{system}\n\n{further}".rstrip(), user)


@cache
def _read(path: Path) -> tuple[str, str]:
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    if not first.startswith(_VERSION):
        raise ValueError(f"the prompt {path.name} has no version")
    return first.removeprefix(_VERSION).strip(), rest.strip()


_MILLION = 1_000_000

_PRICES = {
    "claude-opus-4-5": (5.0, 25.0),
    "claude-opus-4-6": (5.0, 25.0),
    "claude-sonnet-4-5": (3.0, 15.0),
    "claude-sonnet-4-6": (3.0, 15.0),
    "claude-haiku-4-5": (1.0, 5.0),
    "gpt-5": (1.25, 10.0),
    "gpt-5-mini": (0.25, 2.0),
    "gpt-5-nano": (0.05, 0.4),
    "gpt-4.1": (2.0, 8.0),
    "gpt-4.1-mini": (0.4, 1.6),
    "gpt-4.1-nano": (0.1, 0.4),
    "gpt-4o": (2.5, 10.0),
    "gpt-4o-mini": (0.15, 0.6),
    "o3": (2.0, 8.0),
    "o4-mini": (1.1, 4.4),
}

_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


def cost_usd(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """:param model: The vendor's name, with or without the date of its release."""
    price = _PRICES.get(_DATE.sub("", model))
    if price is None:
        return None
    return (input_tokens * price[0] + output_tokens * price[1]) / _MILLION
