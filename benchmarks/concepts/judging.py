"""A judge independent of our rules: the tags and named entities of a spaCy pipeline.

spaCy is no requirement of the project; the benchmark takes the pipeline that it is told, from wherever it is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from souvenir.core.types import ConceptKind, Mentioned

MAX_CHARS_JUDGED = 600
"""Of a text; the judge takes its time."""

NOUN_TAGS = frozenset(("NN", "NNS", "NNP", "NNPS"))
PART_TAGS = NOUN_TAGS | {
    "JJ",
    "JJR",
    "JJS",
    "VBG",
    "VBN",
    "HYPH",
    "POS",
    "CD",
    "AFX",
    "FW",
    "IN",
    "DT",
    "CC",
    "SYM",
    ",",
}
"""What may stand in a noun phrase before its noun, and within a name."""

NAMED = frozenset(("PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LANGUAGE", "LAW"))
COUNTED = frozenset(("DATE", "TIME", "QUANTITY", "MONEY", "PERCENT", "CARDINAL", "ORDINAL"))


@dataclass(frozen=True, slots=True)
class Word:
    """`entity` is the type of the named entity that it is part of, or empty."""

    text: str
    start: int
    tag: str
    entity: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as the judge reads it, cut at MAX_CHARS_JUDGED."""

    text: str
    words: Sequence[Word]
    entities: Sequence[tuple[str, str]]
    """Each with its type."""


class Judge:
    """:param pipeline: The name of an installed spaCy pipeline for English, such as `en_core_web_sm`."""

    def __init__(self, pipeline: str) -> None:
        self._read: Any = import_module("spacy").load(pipeline, disable=("lemmatizer", "parser"))

    def read(self, texts: Sequence[str]) -> Iterator[Reading]:
        for read in self._read.pipe((text[:MAX_CHARS_JUDGED] for text in texts), batch_size=32):
            yield Reading(
                read.text,
                [Word(word.text, word.idx, word.tag_, word.ent_type_) for word in read],
                [(entity.text, entity.label_) for entity in read.ents],
            )


def is_right(mention: Mentioned, reading: Reading) -> bool | None:
    """Whether the judge sees what we see; None if it cannot say: code, hashtags, and what is not in its part.

    A name is right if its words are proper nouns or parts of a named entity, a phrase if it ends with a noun and
    nothing in it is a verb, an adverb or a pronoun, a date or a quantity if it is part of an entity that counts.
    """
    if mention.kind in (ConceptKind.CODE, ConceptKind.HASHTAG):
        return None
    place = re.search(rf"(?<!\w){re.escape(mention.form)}(?!\w)", reading.text)
    if place is None:
        return None
    words = [word for word in reading.words if word.start < place.end() and word.start + len(word.text) > place.start()]
    if mention.kind in (ConceptKind.DATE, ConceptKind.QUANTITY):
        return any(word.entity in COUNTED for word in words)
    parts = all(word.tag in PART_TAGS or word.entity in NAMED for word in words)
    if mention.kind is ConceptKind.NAME:
        return parts and any(word.tag in ("NNP", "NNPS") or word.entity in NAMED for word in words)
    return parts and words[-1].tag in NOUN_TAGS
