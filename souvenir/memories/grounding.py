"""Check that a text supports a statement that a language model derived from it.

Numbers, addresses and names of the statement must stand in the text, and at least three in four of its terms. An
inflected or derived form counts as the word itself, and "the user" always may be the subject. What the words say
together is not compared: a statement that recombines words of the text is supported. Linear in both texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from souvenir.index.analyser import STOP_WORDS, normalised
from souvenir.memories.similarity import figures

MIN_SHARE = 0.75
"""Minimum share of the terms that stand in the text (measured: docs/benchmarks.md)."""

MIN_STEM, MAX_ENDING = 4, 3
"""Two terms are forms of one word if they share a beginning of so many letters, and differ in no more at the end."""

_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty".split(),
        start=2,
    )
}
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d\d\d(?!\d))")
_ADDRESS = re.compile(r"\S*?(?:[^\W\d_][./\\@:]+\w|\w[./\\@:]+[^\W\d_])\S*")
"""A URL, a host, a path, an email address, or a name such as Node.js."""
_SCHEME = re.compile(r"(?:https?://)?(?:www\.)?")
_MARKS = ".,;:!?()[]{}<>\"'“”‘’`*_/"
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")

_USERS = frozenset("user nutzer nutzerin benutzer benutzerin utilisateur utilisatrice usuario usuaria utente".split())
_NO_NAMES = STOP_WORDS | frozenset(
    "der die das ein eine er es sie ihr sein le la les un une il elle ils son sa el los las una lo gli uno o os um uma "
    "de het een no not there these those some".split()
)
"""Words that begin a statement with a capital and name nothing."""

Terms = Callable[[str], Sequence[str]]


class Grounding:
    """A text with which statements are compared."""

    def __init__(self, text: str, terms: Terms) -> None:
        """:param terms: Returns the terms of a text."""
        self._text = normalised(text).casefold()
        self._terms_of = terms
        self._terms = {*terms(text), *_USERS}
        self._beginnings = {beginning for term in self._terms for beginning in _beginnings(term)}
        self._numbers = _numbers(text) | ({"1"} if "one" in self._terms else set())

    def supports(self, statement: str) -> bool:
        terms = set(self._terms_of(statement))
        return (
            _numbers(statement) <= self._numbers
            and all(map(self._has_address, _ADDRESS.findall(normalised(statement).casefold())))
            and all(map(self._has_name, _names(statement)))
            and sum(map(self._has_term, terms)) >= MIN_SHARE * len(terms) > 0
        )

    def _has_address(self, address: str) -> bool:
        bare = _SCHEME.sub("", address.strip(_MARKS), count=1).removesuffix("'s")
        return re.search(rf"(?<![\w@.-]){re.escape(bare)}(?![\w@-])", self._text) is not None

    def _has_name(self, name: str) -> bool:
        return self._terms.issuperset(self._terms_of(name))

    def _has_term(self, term: str) -> bool:
        return term in self._terms or not self._beginnings.isdisjoint(_beginnings(term))


def _numbers(text: str) -> set[str]:
    """Return the numbers of a text, in digits."""
    plain = _THOUSANDS.sub("", text)
    return {*figures(plain), *(_NUMBER_WORDS[word.lower()] for word in _NUMBER_WORD.findall(plain))}


def _names(statement: str) -> Iterator[str]:
    """Return words with a capital, the first one too: it may be a name."""
    for word in _WORD.findall(statement):
        if word != word.lower() and word.lower() not in _NO_NAMES | _USERS:
            yield word


def _beginnings(term: str) -> Iterator[str]:
    return (term[:end] for end in range(max(MIN_STEM, len(term) - MAX_ENDING), len(term) + 1))
