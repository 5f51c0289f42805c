"""What a text mentions, by rules: the one way from a text to concepts.

English is read for phrases; names need a script with capitals; dates, quantities, hashtags and code are found in any
language. Of a block of code only its identifiers count. The result is a function of the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from souvenir.concepts.exact import Sort, Token, tokens
from souvenir.concepts.names import has_capital, is_heading, names
from souvenir.concepts.phrases import phrases
from souvenir.concepts.vocabulary import (
    AUXILIARIES,
    DETERMINERS,
    FOREIGN,
    FUNCTION_WORDS,
    MODALS,
    PREPOSITIONS,
    SUBJECTS,
)
from souvenir.index.folding import normalised
from souvenir.types import ConceptKind, Mentioned

__all__ = ["MAX_CHARS_READ", "MAX_MENTIONS", "RULES_VERSION", "Mentioned", "mentioned"]

RULES_VERSION = 1
"""Raised whenever the same text gives something else."""

MAX_MENTIONS = 16
"""Of one text; of more, those that it says most often, names before phrases before numbers."""

MAX_CHARS_READ = 20_000
"""Of a longer text the beginning is read, which bounds the time."""

_FENCE = re.compile("^ {0,3}(?:```|~~~)", re.MULTILINE)

_ENGLISH = DETERMINERS | PREPOSITIONS | FUNCTION_WORDS | AUXILIARIES | MODALS | SUBJECTS | {"to"}

_MARKUP = frozenset("#*|>_=")
_BULLETS = frozenset("-*•–—")

_WEIGHTS = {
    ConceptKind.NAME: 3.0,
    ConceptKind.HASHTAG: 3.0,
    ConceptKind.CODE: 1.5,
    ConceptKind.PHRASE: 1.5,
    ConceptKind.DATE: 1.5,
    ConceptKind.QUANTITY: 1.0,
}


def mentioned(text: str) -> tuple[Mentioned, ...]:
    """What a text mentions, each key once, in order of appearance; at most `MAX_MENTIONS`.

    Of spellings of one key the first is given. Only the first `MAX_CHARS_READ` characters are read.
    """
    text = normalised(text[:MAX_CHARS_READ])[:MAX_CHARS_READ]
    found = sorted(_all_mentions(text), key=lambda place_and_mention: place_and_mention[0])
    counts: dict[str, float] = {}
    first: dict[str, Mentioned] = {}
    for _, mention in found:
        counts[mention.key] = counts.get(mention.key, 0.0) + _WEIGHTS[mention.kind]
        first.setdefault(mention.key, mention)
    kept = set(sorted(first, key=lambda key: -counts[key])[:MAX_MENTIONS])
    return tuple(mention for key, mention in first.items() if key in kept)


def _all_mentions(text: str) -> Iterator[tuple[int, Mentioned]]:
    for start, piece, is_code in _pieces(text):
        cut = list(tokens(piece))
        for token in cut:
            if token.mention and not (is_code and token.mention.kind is not ConceptKind.CODE):
                yield start + token.start, token.mention
        if not is_code:
            for place, mention in _worded(cut):
                yield start + place, mention


def _pieces(text: str) -> Iterator[tuple[int, str, bool]]:
    """Prose and blocks of code in turns; a block that is not closed goes on to the end."""
    start, is_code = 0, False
    for fence in _FENCE.finditer(text):
        yield start, text[start : fence.start()], is_code
        start, is_code = fence.end(), not is_code
    yield start, text[start:], is_code


def _worded(cut: Sequence[Token]) -> Iterator[tuple[int, Mentioned]]:
    """Names and phrases, which need sentences."""
    sentences = list(_sentences(cut))
    headings = [is_heading([word for word in sentence.words if word], sentence.marked) for sentence in sentences]
    seen = {
        token.word
        for sentence, heading in zip(sentences, headings, strict=True)
        if not heading
        for token in sentence.words[1:]
        if token and has_capital(token)
    }
    english, alone = _is_english(cut), len(sentences) == 1
    for sentence, heading in zip(sentences, headings, strict=True):
        words = list(sentence.words)
        for name in () if heading else names(sentence.words, seen):
            yield name.start, name.mention
            words[name.first : name.end] = [None] * (name.end - name.first)
        if english:
            yield from phrases(words, alone=alone)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """Words with None for marks and for what is found already.

    :param marked: Whether it stands behind a mark of headings or lists, or before a colon.
    """

    words: Sequence[Token | None]
    marked: bool


def _sentences(cut: Sequence[Token]) -> Iterator[_Sentence]:
    """Quotes start a new one too; what a mark opens goes on to the end of the line."""
    words: list[Token | None] = []
    marked, number = False, False
    for token in cut:
        if token.sort is Sort.WORD:
            words.append(token)
        elif token.sort in (Sort.END, Sort.QUOTE):
            ends_line = "\n" in token.text
            if words:
                yield _Sentence(words, marked or token.text[0] == ":")
            marked = (marked and not ends_line) or number or token.text.strip() in _BULLETS
            words = []
        elif words:
            words.append(None)
        else:
            marked = marked or token.text in _MARKUP
        number = token.sort is Sort.VOID and not words
    if words:
        yield _Sentence(words, marked)


def _is_english(cut: Sequence[Token]) -> bool:
    """Whether no other language's small words are more than English ones; so a text without any counts as English."""
    words = [token.word for token in cut if token.sort is Sort.WORD]
    return sum(word in FOREIGN for word in words) <= sum(word in _ENGLISH for word in words)
