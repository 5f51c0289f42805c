"""One question to a model whose answer is a list: what fits is kept, and what does not is told.

The provider has asked again by then. What is left of an answer that does not fit as a whole is read item by item; an
answer of which no text can be read is the provider's error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic

from pydantic import BaseModel

from llm_provider import LLMProvider
from souvenir.errors import LLMError, LLMOutputUnusable
from souvenir.extraction.prompts import label
from souvenir.llm.salvage import Broken, salvaged
from souvenir.llm.types import Prompt, Shape
from souvenir.types import JsonObject

EXTRACT, AUDN = "extract", "audn"
"""The two stages, as clients know them."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[Shape]):
    """:param call: What the ledger says of the question; no text of it.

    :param broken: Items that do not fit; None of an answer that does.
    """

    items: tuple[Shape, ...]
    broken: tuple[Broken, ...]
    model: str
    call: JsonObject


def ask(
    provider: LLMProvider, stage: str, prompt: Prompt, whole: type[BaseModel], key: str, item: type[Shape]
) -> Asked[Shape]:
    """:param whole: The shape that is asked for. :param key: Its list. :param item: What the list holds.

    :raises LLMError: If there is no answer, or no text of it can be read.
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
    """The longest text in a value that was meant to be an item."""
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
    """What a call says of the questions that were asked before it failed."""
    return {
        "attempts": error.attempts,
        "input_tokens": error.input_tokens,
        "output_tokens": error.output_tokens,
        "cost_usd": error.cost_usd,
    }


def _call(stage: str, prompt: Prompt, model: str, items: int) -> dict[str, object]:
    return {"stage": stage, "prompt": label(prompt), "model": model, "items": items}
