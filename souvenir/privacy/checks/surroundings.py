"""The context of a match: whether it is part of something longer, and which word before it describes it.

Every check inspects a bounded number of characters, so that its cost is independent of the position in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum

Found = tuple[int, int]
"""Start and end of a match in its text, in characters."""

Check = Callable[[str, int, int], Sequence[Found]]
"""Called with a match and its surroundings in the text; returns the findings among its parts."""

CHARS_BEFORE_MATCH = 68
CHARS_AFTER_MATCH = 20
"""The surroundings of a match; no check looks further."""
BEFORE_CHARS = 48
AFTER_CHARS = 16

_POSSESSIVES = frozenset("my your his her their our new meine deine seine ihre unsere mon votre son mi su meu".split())
# Latin, Greek and Cyrillic: adjacent characters of scripts without spaces are not part of the word.
_WORDS = re.compile(r"[A-Za-z\u00c0-\u024f\u0370-\u052f]+|#")


def is_word(character: str) -> bool:
    """Return True if adjacent letters and digits belong to the same word; scripts without spaces end a Western word."""
    return character.isascii() and (character.isalnum() or character == "_")


def is_part_of_longer(text: str, start: int, end: int, *, joints: str = "-/") -> bool:
    """Return True if the span is part of a longer word or number: of ``a1b2``, ``1.5``, ``x-1``.

    :param joints: Characters that join words here, in addition to a point before a digit.
    """
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before and is_word(text[start]):
        if is_word(before[-1]):
            return True
        if len(before) == 2 and (
            (before[1] in joints and is_word(before[0])) or (before[1] == "." and before[0].isdigit())
        ):
            return True
    if not after:
        return False
    if is_word(after[0]):
        return True
    return len(after) == 2 and ((after[0] in joints and is_word(after[1])) or (after[0] == "." and after[1].isdigit()))


class Says(Enum):
    """The evidence of the nearest context word before a span."""

    YES = 1
    NO = 2
    NOTHING = 3


class ContextWords:
    """Words that identify a kind of number, and words that exclude it."""

    def __init__(self, yes: str, no: str = "", *, named: str = "", unspaced: str = "", units: str = "") -> None:
        """Word lists are separated by spaces.

        :param named: Words that identify after a possessive: *my number*, not *the order number*.
        :param units: Words that exclude directly after a number.
        :param unspaced: Words of scripts without spaces, which match anywhere.
        """
        self._meaning = dict.fromkeys(no.split(), Says.NO) | dict.fromkeys(yes.split(), Says.YES)
        self._units = frozenset(units.split())
        self._named = frozenset(named.split())
        self._unspaced = tuple(unspaced.split())

    def before(self, text: str, start: int) -> Says:
        """Return the meaning of the last context word before the span; the nearer one wins."""
        near = text[max(0, start - BEFORE_CHARS) : start]
        behind = ""
        for word in map(str.lower, reversed(_WORDS.findall(near))):
            meaning = self._meaning.get(word)
            if meaning is not None:
                return meaning
            if behind in self._named and word in _POSSESSIVES:
                return Says.YES
            behind = word
        if not near.isascii() and any(word in near for word in self._unspaced):
            return Says.YES
        return Says.NOTHING

    def after(self, text: str, end: int) -> Says:
        """Return the meaning of the word directly after: ``555 0100 (mobile)``, ``1 000 000 EUR``."""
        word = _WORDS.search(text, end, end + AFTER_CHARS)
        if word is None or any(character.isalnum() or character in ".\n" for character in text[end : word.start()]):
            return Says.NOTHING
        if word[0].lower() in self._units:
            return Says.NO
        return Says.YES if self._meaning.get(word[0].lower()) is Says.YES else Says.NOTHING
