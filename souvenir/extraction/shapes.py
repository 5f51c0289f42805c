"""The answers that language models are asked for. What they mean is checked elsewhere; here is what fits at all."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, StringConstraints

from souvenir.decisions import Category, Verdict


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number, not true or false")
    return value


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


Number = Annotated[int, BeforeValidator(_no_truth)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class ProposedFact(BaseModel):
    """A quote that is missing or cannot be found, and a time that is none, cost trust and not the fact."""

    category: Annotated[Category, BeforeValidator(_upper)]
    text: Text
    quote: str = ""
    when: str | None = None


class Proposals(BaseModel):
    facts: list[ProposedFact]


class MadeDecision(BaseModel):
    """`fact` and `memory` are numbers of what the model was shown, from 1."""

    fact: Number
    verdict: Annotated[Verdict, BeforeValidator(_upper)]
    memory: Number | None = None
    text: str | None = None
    reason: str = ""


class Decisions(BaseModel):
    decisions: list[MadeDecision]
