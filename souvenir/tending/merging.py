"""One text of several near memories: asked of a language model, and held against what the memories say.

Nothing is stored here. What a model writes is taken only if it is no longer than the texts together and has their
numbers, all of them and no others: a figure that is lost or made up is what nobody would notice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel

from llm_provider import LLMProvider
from souvenir.errors import LLMOutputUnusable, LLMRefused
from souvenir.llm.prompt_files import prompt_of
from souvenir.types import Memory

PROMPT = "consolidate"

MAX_CHARS = 12_000
"""Of the texts that are merged into one."""

_FOLDER = Path(__file__).with_name("prompts")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")


class NotMerged(StrEnum):
    """Why memories stay as they are."""

    CHANGED = "changed"
    TOO_LONG = "too_long"
    DECLINED = "declined"
    UNUSABLE = "unusable"
    LONGER = "longer"
    NUMBERS_DIFFER = "numbers_differ"


class Merging(BaseModel):
    """What the model answers."""

    merge: bool
    text: str
    reason: str


def merged_text(provider: LLMProvider, memories: Sequence[Memory]) -> str | NotMerged:
    """:raises LLMUnavailable: If it may be tried later. :raises LLMRejected: If settings have to be corrected."""
    texts = [memory.text for memory in memories]
    if sum(map(len, texts)) > MAX_CHARS:
        return NotMerged.TOO_LONG
    listed = [
        {"number": number, "date": memory.occurred_at.date().isoformat(), "statement": memory.text}
        for number, memory in enumerate(memories, 1)
    ]
    asked = prompt_of(_FOLDER, PROMPT, json.dumps(listed, ensure_ascii=False))
    try:
        answer = provider.generate(asked, Merging).value
    except LLMRefused:
        return NotMerged.DECLINED
    except LLMOutputUnusable:
        return NotMerged.UNUSABLE
    return _checked(answer, texts)


def _checked(answer: Merging, texts: Sequence[str]) -> str | NotMerged:
    text = answer.text.replace("\0", "").strip()
    if not answer.merge or not text:
        return NotMerged.DECLINED
    if len(text) > sum(map(len, texts)):
        return NotMerged.LONGER
    if set(_NUMBER.findall(text)) != {number for one in texts for number in _NUMBER.findall(one)}:
        return NotMerged.NUMBERS_DIFFER
    return text
