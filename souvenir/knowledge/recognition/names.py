"""Recognise names by capitals that grammar does not require.

The capital at the start of a sentence is no evidence, nor are those of a heading, of a text in capitals, or of a word
that is always capitalised (`I`, `Monday`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from souvenir.core.types import ConceptKind, Mentioned
from souvenir.knowledge.recognition.exact import Token
from souvenir.knowledge.recognition.spelling import key_of
from souvenir.knowledge.recognition.vocabulary import (
    GENERIC,
    PLACE_OPENERS,
    SENTENCE_OPENERS,
    WordClass,
    class_of,
    is_known,
)

MAX_WORDS = 5
_SMALL = (WordClass.DETERMINER, WordClass.PREPOSITION, WordClass.TO, WordClass.FUNCTION)
_INSIDE = frozenset("of the de la le van von der den del da di du bin al &".split())
_HEADING_WORDS = 3
"""From this many words on, capitals on all of them indicate a heading."""

_NO_NAME = (
    *(WordClass.FUNCTION, WordClass.BE, WordClass.SUBJECT, WordClass.MODAL, WordClass.TO),
    *(WordClass.DETERMINER, WordClass.PREPOSITION),
)


@dataclass(frozen=True, slots=True)
class Name:
    """A name from word `first` to, excluding, word `end` of a sentence; `start` is its offset in the text."""

    first: int
    end: int
    start: int
    mention: Mentioned


def has_capital(token: Token) -> bool:
    """Return True for a capital at the start or inside: iPhone."""
    return token.text != token.word and (token.text[0].isupper() or _is_unlike_a_start(token.text))


def is_heading(words: Sequence[Token], marked: bool) -> bool:
    """Return True if capitals are no evidence, because all words, or all but the small ones, are capitalised.

    :param marked: True if markup indicates a heading; otherwise several words are needed.
    """
    telling = 0
    for word in words:
        if has_capital(word):
            telling += class_of(word.word) not in _SMALL and not _is_unlike_a_start(word.text)
        elif class_of(word.word) not in _SMALL:
            return False
    if len(words) >= _HEADING_WORDS and all(word.text.isupper() for word in words):
        return True
    return marked or telling >= _HEADING_WORDS


def names(words: Sequence[Token | None], seen: Collection[str]) -> list[Name]:
    """Return the names in a sentence.

    :param words: None where a name cannot continue.
    :param seen: Lower-case words that are capitalised within a sentence of the same text.
    """
    found: list[Name] = []
    place = 0
    while place < len(words):
        end = _end_of_name(words, place, seen)
        if end > place:
            run = [word for word in words[place:end] if word is not None]
            mention = _mention(run)
            if mention:
                found.append(Name(place, end, run[0].start, mention))
        place = max(end, place + 1)
    return found


def _end_of_name(words: Sequence[Token | None], place: int, seen: Collection[str]) -> int:
    """Return the end of the name that begins here; `place` if there is none."""
    if not _may_begin(words, place, seen):
        return place
    end = place + 1
    while end - place < MAX_WORDS:
        last, ahead = words[end - 1], words[end] if end < len(words) else None
        if last is None or ahead is None or last.text.endswith(("'s", "'")):
            break
        if _may_continue(ahead):
            end += 1
        elif ahead.word in _INSIDE and (step := _inside(words, end)) and end + step - place <= MAX_WORDS:
            end += step
        else:
            break
    if end - place == 1 and not _may_be_single(words, place):
        return place
    return end


def _may_begin(words: Sequence[Token | None], place: int, seen: Collection[str]) -> bool:
    token = words[place]
    if token is None or not has_capital(token):
        return False
    word = token.word
    if class_of(word) in _NO_NAME or word in GENERIC:
        return False
    ahead = words[place + 1] if place + 1 < len(words) else None
    goes_on = ahead is not None and _may_continue(ahead)
    if place > 0:
        return goes_on or class_of(word) is not WordClass.VERB
    if word in SENTENCE_OPENERS:
        return False
    if _is_unlike_a_start(token.text) or (word in seen and not is_known(word)):
        return True
    return goes_on and (word in PLACE_OPENERS or not is_known(word))


def _is_unlike_a_start(text: str) -> bool:
    """Return True for capitals after the first letter: LGBTQ, YouTube."""
    stem = text.removesuffix("'s")
    return len(stem) > 1 and any(letter.isupper() for letter in stem[1:]) and "-" not in stem


def _may_continue(token: Token) -> bool:
    word = token.word
    return has_capital(token) and class_of(word) not in _NO_NAME and word not in GENERIC


def _inside(words: Sequence[Token | None], place: int) -> int:
    """Return the number of words up to the next capitalised one, including it; 0 if there is none."""
    for step in (1, 2):
        token = words[place + step] if place + step < len(words) else None
        if token is None:
            return 0
        if _may_continue(token):
            return step + 1
        if token.word not in _INSIDE:
            return 0
    return 0


def _may_be_single(words: Sequence[Token | None], place: int) -> bool:
    token = words[place]
    if token is None:
        return False
    return len(token.text.removesuffix("'s")) > 1 and class_of(token.word) is not WordClass.ADJECTIVE


def _mention(run: Sequence[Token]) -> Mentioned | None:
    form = " ".join(token.text for token in run)
    form = form.removesuffix("'s").removesuffix("'")
    key = key_of(form)
    return Mentioned(key, form, ConceptKind.NAME) if len(key) > 1 else None
