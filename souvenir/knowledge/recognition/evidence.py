"""Evidence for an English name other than its capital: what it does, what is done with it, and the lists of names.

All functions take the words of a sentence, with None for marks, or the folded words, and the place of one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.exact import Token
from souvenir.knowledge.recognition.foreign import ENGLISH, SPANISH
from souvenir.knowledge.recognition.gazetteer import (
    COMMON_WORDS,
    GIVEN_NAMES,
    HEADS,
    KNOWN,
    KNOWN_COMPOUNDS,
    PHRASE_HEADS,
)
from souvenir.knowledge.recognition.spelling import singular
from souvenir.knowledge.recognition.vocabulary import WordClass, class_of

MIN_UNKNOWN_CHARS = 4
"""Shorter unknown words in small letters are abbreviations and slips."""

MAX_WORDS_OF_COMPOUND = 3

USES = frozenset("using use uses install installed installing uninstall configure run deploy".split())
"""Words before the name of a tool."""

_FRAMES = frozenset(
    "set up,setting up,switch to,switched to,migrate to,migrated to,work at,works at,worked at".split(",")
)
"""Two words before the name of a tool or of a workplace."""

_ENDS = (WordClass.DETERMINER, WordClass.PREPOSITION, WordClass.TO, WordClass.FUNCTION)

_UNUSUAL = (WordClass.NOUN, WordClass.GERUND)
"""Classes of words in no list: aibling."""

_NOUNS = (WordClass.NOUN, WordClass.NOUN_OR_VERB, WordClass.NOUNS_OR_VERBS, WordClass.RELATIONAL)
_BEFORE_HEADS = frozenset(("de", "del"))


def _is_telling(name: str) -> bool:
    """Return True if a compound needs no capitals, since it has an unusual word or begins with a company."""
    first, *_ = words = name.split()
    is_usual = all(word in COMMON_WORDS or word.isdigit() or class_of(word) not in _UNUSUAL for word in words)
    return not is_usual or KNOWN.get(first) is ConceptKind.ORGANISATION


_LOWER_COMPOUNDS = frozenset(filter(_is_telling, KNOWN_COMPOUNDS))
_LOWER_PLACES = frozenset(filter(_is_telling, (name for name in KNOWN if " " in name))) - _LOWER_COMPOUNDS
_COMPOUND_STARTS = frozenset(name.split()[0] for name in KNOWN_COMPOUNDS | _LOWER_PLACES)


def ends_of_compounds(words: Sequence[Token | None], folded: Sequence[str], *, lower: bool) -> dict[int, int]:
    """Return the end of each well-known name of several words, by the place of its first word.

    :param lower: True if names of places need no capitals either.
    """
    in_small_letters = _LOWER_COMPOUNDS | _LOWER_PLACES if lower else _LOWER_COMPOUNDS
    found = {}
    for place, word in enumerate(folded):
        if word in _COMPOUND_STARTS:
            for end in range(place + 2, min(len(folded), place + MAX_WORDS_OF_COMPOUND) + 1):
                name = " ".join(folded[place:end])
                if name in in_small_letters or (name in KNOWN_COMPOUNDS and _is_written_large(words[place:end])):
                    found[place] = end
    return found


def _is_written_large(words: Sequence[Token | None]) -> bool:
    """Return True if the first and the last word have a capital: Pets at Home."""
    return all(word is not None and word.text[0].isupper() for word in (words[0], words[-1]))


def is_in_frame(words: Sequence[Token | None], folded: Sequence[str], place: int) -> bool:
    """Return True for an unknown word in small letters where a tool or a workplace is named: "works at zorblax"."""
    word = folded[place]
    if " ".join(folded[max(0, place - 2) : place]) not in _FRAMES or class_of(word) is not WordClass.NOUN:
        return False
    if len(word) < MIN_UNKNOWN_CHARS or not word.isalpha() or singular(word) != word:
        return False
    ahead = words[place + 1] if place + 1 < len(words) else None
    return place + 1 == len(words) or (ahead is not None and class_of(ahead.word) in _ENDS)


def is_subject(words: Sequence[Token | None], word: str) -> bool:
    """Return True if a word that opens a sentence can only be the name of what acts: "Wise charges a fee"."""
    verb = words[1] if len(words) > 1 else None
    if verb is None or not verb.word.endswith("s") or class_of(verb.word) is not WordClass.VERB:
        return False
    is_name = KNOWN.get(word) in (ConceptKind.ORGANISATION, ConceptKind.PRODUCT)
    return is_name or class_of(word) in (WordClass.VERB, WordClass.ADJECTIVE)


def with_head(
    words: Sequence[Token | None], folded: Sequence[str], name: tuple[int, int], language: str
) -> tuple[int, int]:
    """Return the start and the end of a name with its head in small letters: "LGBTQ center", "maratón de Sevilla"."""
    first, end = name
    if language == ENGLISH:
        last, ahead = words[end - 1], words[end] if end < len(words) else None
        if ahead is None or last is None or last.text.endswith(("'s", "'")) or folded[first] in GIVEN_NAMES:
            return name
        if folded[end] in PHRASE_HEADS:
            return first, end + 1
        second = folded[end + 1] if end + 1 < len(words) else ""
        is_head = PHRASE_HEADS.get(second) is ConceptKind.ORGANISATION
        return (first, end + 2) if is_head and class_of(ahead.word) in _NOUNS else name
    if language == SPANISH and first > 0:
        if folded[first - 1] in HEADS:
            return first - 1, end
        if folded[first - 1] in _BEFORE_HEADS:
            heads = (place for place in (first - 2, first - 3) if place >= 0 and folded[place] in HEADS)
            return next(heads, first), end
    return name
