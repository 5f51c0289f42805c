"""What a text mentions, and what is claimed of it."""

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


class ClaimKind(StrEnum):
    """What a claim says of a concept. `alias`: it is another name of the other concept, or is called so too."""

    NAME = "name"
    DESCRIPTION = "description"
    ALIAS = "alias"
    KIND = "kind"
    RELATION = "relation"


class ClaimedBy(StrEnum):
    """Who claims something: a caller, or a language model because of a message."""

    CALLER = "caller"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Mentioned:
    """One concept in one text.

    :param key: The normalised form that all its spellings share; readable, never empty.
    :param form: As it stands in the text.
    """

    key: str
    form: str
    kind: ConceptKind
