"""Split a text into facts: by a language model, by its caller, or at the ends of its sentences.

A fact of a model is accepted only if its words stand in the text (`Grounding`). A sentence that begins with a pronoun
gets its subject or the whole of the one before. Nothing is stored here. Splitting by sentences is deterministic and
linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel

from souvenir.core.errors import (
    DeadlineExceeded,
    InvalidRequest,
    LLMError,
    LLMOutputUnusable,
    LLMPromptTooLong,
    LLMRefused,
)
from souvenir.core.text import fenced, sentences
from souvenir.core.types import FactsBy
from souvenir.memories.coreference import standalone
from souvenir.memories.grounding import Grounding, Terms
from souvenir.models.llm.prompts import Prompt, prompt_of
from souvenir.models.llm.provider import LLMProvider

PROMPT = "split"

MAX_ASKED_CHARS = 12_000
"""Limit for the model: longer texts contain more than a few facts, and are split by sentences."""

MIN_ASKED_WORDS = 12
"""Minimum length of a single sentence for the model; a shorter one is a fact already."""

MAX_MODEL_FACTS = 8
"""The prompt asks for five, and some models return a few more."""

MAX_MODEL_FACT_CHARS = 500
MAX_SENTENCES = 32

MAX_GIVEN_FACTS = 50
MAX_GIVEN_FACT_CHARS = 2_000

_FOLDER = Path(__file__).with_name("prompts")
_WORD = re.compile(r"\w")


class SplitText(BaseModel):
    """The output of the model."""

    facts: list[str]


@dataclass(frozen=True, slots=True)
class Split:
    """:param failure: Why no model split it, although one should have. :param later: True if a retry may succeed."""

    facts: tuple[str, ...]
    made_by: FactsBy
    failure: str | None = None
    later: bool = False


def given(facts: Iterable[str]) -> Split:
    """Check the caller's own facts.

    :raises InvalidRequest: If there are too many, or one is empty or too long.
    """
    said = list(facts)
    if len(said) > MAX_GIVEN_FACTS:
        raise InvalidRequest(f"A memory takes at most {MAX_GIVEN_FACTS} facts, and these are {len(said)}; send fewer")
    if not all(1 <= len(fact.strip()) <= MAX_GIVEN_FACT_CHARS for fact in said):
        raise InvalidRequest(f"A fact takes 1 to {MAX_GIVEN_FACT_CHARS:,} characters; shorten it or leave it out")
    return Split(_distinct(said), FactsBy.CALLER)


def by_sentences(text: str) -> Split:
    """Split the text into sentences that can be understood alone; many sentences are only grouped."""
    spans = [(start, end) for start, end in sentences(text) if _WORD.search(text, start, end)]
    if len(spans) <= MAX_SENTENCES:
        pieces = standalone([text[start:end] for start, end in spans])
    else:
        cuts = [len(spans) * group // MAX_SENTENCES for group in range(MAX_SENTENCES + 1)]
        pieces = [text[spans[first][0] : spans[behind - 1][1]] for first, behind in pairwise(cuts)]
    return Split(_distinct(pieces), FactsBy.SENTENCES)


def needs_no_model(text: str) -> bool:
    """Return True if it is always split by sentences: too short to be split, or too long for a few facts."""
    return len(text) > MAX_ASKED_CHARS or (len(sentences(text)) < 2 and len(text.split()) < MIN_ASKED_WORDS)


def split(text: str, provider: LLMProvider | None, terms: Terms) -> Split:
    """Split as `asked` does; if the model is unavailable, split by sentences and return the reason."""
    try:
        return asked(text, provider, terms)
    except (LLMError, DeadlineExceeded) as error:
        return replace(by_sentences(text), failure=error.message, later=True)


def asked(text: str, provider: LLMProvider | None, terms: Terms) -> Split:
    """Split by the model, if there is one and it is needed; by sentences if its answer is unusable.

    :param terms: Returns the terms of a text.
    :raises LLMUnavailable: If a retry may succeed. :raises LLMRejected: If the settings must be corrected.
    :raises DeadlineExceeded: If the request's deadline has passed.
    """
    if provider is None or needs_no_model(text):
        return by_sentences(text)
    try:
        said = provider.generate(_question(text), SplitText).value.facts
    except (LLMRefused, LLMOutputUnusable, LLMPromptTooLong) as error:
        return replace(by_sentences(text), failure=error.message)
    believed = _believed(text, said, terms)
    return Split(believed, FactsBy.MODEL) if believed else by_sentences(text)


def _question(text: str) -> Prompt:
    return prompt_of(_FOLDER, PROMPT, fenced(text, name="memory"))


def _believed(text: str, said: Sequence[str], terms: Terms) -> tuple[str, ...]:
    grounding = Grounding(text, terms)
    facts = (" ".join(one.split()) for one in said)
    kept = [fact for fact in facts if len(fact) <= MAX_MODEL_FACT_CHARS and grounding.supports(fact)]
    return _distinct(kept)[:MAX_MODEL_FACTS]


def _distinct(facts: Iterable[str]) -> tuple[str, ...]:
    """Strip the facts, and drop empty ones and repetitions that differ in case and whitespace only."""
    found: dict[str, str] = {}
    for fact in facts:
        if clean := fact.strip():
            found.setdefault(" ".join(clean.casefold().split()), clean)
    return tuple(found.values())
