"""What a text mentions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ConceptKind(StrEnum):
    """What sort of thing a concept is, as far as its spelling tells."""

    NAME = "name"
    PHRASE = "phrase"
    DATE = "date"
    QUANTITY = "quantity"
    HASHTAG = "hashtag"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Mentioned:
    """One concept in one text.

    :param key: The normalised form that all its spellings share; readable, never empty.
    :param form: As it stands in the text.
    """

    key: str
    form: str
    kind: ConceptKind
