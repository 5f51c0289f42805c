"""Questions to the model, the accepted answers, and their costs.

Prompts are the files next to this module. A question asks for a list: items that match the schema are kept, and the
others are reported. The provider has already retried. A malformed answer is parsed item by item; an answer without
readable text raises the provider's error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic

from pydantic import BaseModel, BeforeValidator, StringConstraints

from souvenir.core.errors import LLMError, LLMOutputUnusable
from souvenir.core.ledger import Category, Verdict
from souvenir.core.types import JsonObject
from souvenir.models.llm.prompts import Prompt, Shape, prompt_of
from souvenir.models.llm.provider import LLMProvider
from souvenir.models.llm.salvage import Broken, salvaged

PROPOSE, PROPOSE_ALL, DECIDE = "propose", "propose_all", "decide"

_FOLDER = Path(__file__).with_name("prompts")


def prompt(name: str, user: str, *, further: str = "") -> Prompt:
    """:param user: The content to ask about. :param further: Instructions that the source's profile adds."""
    return prompt_of(_FOLDER, name, user, further=further)


def label(asked: Prompt) -> str:
    """Return name and version, the form stored in decisions."""
    return f"{asked.name}@{asked.version}"


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number, not true or false")
    return value


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


Number = Annotated[int, BeforeValidator(_no_truth)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class ProposedFact(BaseModel):
    """A missing quote, one that is not found, or an invalid time lowers the trust of a fact but does not discard it."""

    category: Annotated[Category, BeforeValidator(_upper)]
    text: Text
    quote: str = ""
    when: str | None = None


class Proposals(BaseModel):
    facts: list[ProposedFact]


class MadeDecision(BaseModel):
    """`fact` and `memory` are numbers, from 1, of the facts and memories shown to the model."""

    fact: Number
    verdict: Annotated[Verdict, BeforeValidator(_upper)]
    memory: Number | None = None
    text: str | None = None
    reason: str = ""


class Decisions(BaseModel):
    decisions: list[MadeDecision]


EXTRACT, AUDN = "extract", "audn"
"""The two stages, as named in the API."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[Shape]):
    """:param call: The ledger's record of the question, without any text.

    :param broken: Malformed items; empty if the whole answer matches the schema.
    """

    items: tuple[Shape, ...]
    broken: tuple[Broken, ...]
    model: str
    call: JsonObject


def ask(
    provider: LLMProvider, stage: str, prompt: Prompt, whole: type[BaseModel], key: str, item: type[Shape]
) -> Asked[Shape]:
    """:param whole: The requested schema. :param key: The field with the list. :param item: The schema of an item.

    :raises LLMError: If there is no answer, or none of its text can be read.
    """
    try:
        generated = provider.generate(prompt, whole)
    except LLMOutputUnusable as error:
        found = salvaged(error.raw, key, item)
        if not found.items and not any(text_in(broken.value) for broken in found.broken):
            raise
        call = _call(stage, prompt, provider.model, len(found.items) + len(found.broken))
        faults = [error.reason, *(broken.reason for broken in found.broken)]
        return Asked(found.items, found.broken, provider.model, {**call, **spent(error), "faults": faults})
    items: tuple[Shape, ...] = tuple(getattr(generated.value, key))
    return Asked(
        items,
        (),
        generated.model,
        {
            **_call(stage, prompt, generated.model, len(items)),
            "attempts": generated.attempts,
            "repaired": generated.repaired,
            "input_tokens": generated.usage.input_tokens,
            "output_tokens": generated.usage.output_tokens,
            "cost_usd": generated.usage.cost_usd,
        },
    )


def text_in(value: Any) -> str:
    """Return the longest string in a malformed item."""
    return max(_texts(value), key=len, default="")


def _texts(value: Any) -> Iterator[str]:
    rest = [value]
    while rest:
        match rest.pop():
            case str() as text:
                yield " ".join(text.split())
            case dict() as pairs:
                rest += pairs.values()
            case list() as items:
                rest += items


def spent(error: LLMError) -> dict[str, object]:
    """Return the usage of the attempts before a call failed."""
    return {
        "attempts": error.attempts,
        "input_tokens": error.input_tokens,
        "output_tokens": error.output_tokens,
        "cost_usd": error.cost_usd,
    }


def _call(stage: str, prompt: Prompt, model: str, items: int) -> dict[str, object]:
    return {"stage": stage, "prompt": label(prompt), "model": model, "items": items}
