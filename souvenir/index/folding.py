"""One form for what is written in many: the Unicode side of the analyser.

Nothing here knows of words; the work is linear in the length of the text, whatever the text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# Written differently, meant alike, which NFKC leaves as they are; some are invisible. The last two are marks that count
# as letters until NFKC makes these marks of them.
_SPELLINGS = (("\u2019", "'"), ("\u2018", "'"), ("\u02bc", "'"), ("\u00b4", "'"), ("\u2010", "-"), ("\u2011", "-"),
              ("\u2212", "-"), ("\u00ad", ""), ("\u200c", ""), ("\u200d", ""), ("\u2060", ""), ("\ufeff", ""),
              ("\uff9e", "\u3099"), ("\uff9f", "\u309a"))  # fmt: skip

# Latin letters that Unicode does not decompose into a base and a mark.
_UNDECOMPOSED = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "\u0640": ""}
)

# Accents over Latin and Greek letters and Cyrillic ie, Hebrew points, Arabic vowels. Not what makes a letter another
# one: Cyrillic short i, the voiced kana, the vowel signs of Indic scripts.
_DIACRITIC = re.compile(
    "(?<=[a-z\u0370-\u03ff\u0435])[\u0300-\u036f]+|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]+"
)

# Normalising takes quadratic time in a run of marks; 30 is what Unicode Annex 15 calls stream-safe. Marks, and signs
# that are no terms anyway, are the characters beyond ASCII that are not \w.
_MARK_FLOOD = re.compile(r"([^\w\x00-\x7f]{30})[^\w\x00-\x7f]+")

_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")


def normalised(text: str) -> str:
    """NFKC, with one sign for what is meant alike, digits in ASCII, and floods of combining marks cut short."""
    for written, meant in _SPELLINGS:
        text = text.replace(written, meant)
    text = unicodedata.normalize("NFKC", _MARK_FLOOD.sub(r"\1", text))
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def fold(word: str) -> str:
    """A casefolded word without diacritics; as it is if nothing else is in it."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word).translate(_UNDECOMPOSED)
    return unicodedata.normalize("NFC", _DIACRITIC.sub("", decomposed)) or word


def has_marks(text: str) -> bool:
    """Whether combining marks are left in a normalised text."""
    return _marks().search(text) is not None


@cache
def mark_class() -> str:
    """Give the combining marks of the basic plane as a regex class; Python's word class leaves them out.

    It ends before the variation selectors, which say how the character before them is drawn.
    """
    points = map(chr, range(0x300, 0xFE00))
    return f"[{''.join(point for point in points if unicodedata.category(point) in ('Mn', 'Mc'))}]"


@cache
def _marks() -> re.Pattern[str]:
    return re.compile(mark_class())
