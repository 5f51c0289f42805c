"""Text to index terms: one function for stored texts and for queries.

A text is split into tokens at white space and punctuation; a compound token (``fly.io``, ``getUserName``,
``2023-05-08``) gives a term for the whole and terms for its parts. The terms of each kind:

| token | terms |
|---|---|
| plain word | casefolded, diacritics folded, Snowball stem; nothing if it is a stop word |
| ``Jane's``, ``don't`` | ``jane``; ``do``, a stop word |
| ``fly.io``, ``src/app.py``, ``a@b.org`` | as written, then each part as a token of its own |
| ``kebab-case``, ``snake_case``, ``getUserName`` | joined (``kebabcase``, stemmed as a word), then the parts |
| ``2023-05-08``, ``10:30`` | as written, then the parts (of dotted numbers and times: the leading ones) |
| ``v2.1``, ``10.5GB``, ``python3`` | as written, then the number and the letters |
| ``1,000``, ``1990s``, ``U.S.A.``, ``C++``, ``C#`` | ``1000``; ``1990``; ``usa``; ``c++`` and ``c``; ``c#`` and ``c`` |
| scripts written without spaces | bigrams of characters; an isolated character is a term |
| emoji and symbols beyond ASCII (``€``, ``→``, flags) | each is a term, without skin tone; table lines are not |

A joined whole makes ``wi-fi`` match ``wifi`` and ``user_name`` match ``userName``. A text or query that consists of
stop words keeps them, so that it can be found at all; one of nothing but punctuation keeps each run of it. Only a blank
text has no terms.

Every step, including Unicode normalisation, is linear in the length of the text. This module knows neither frequencies
nor indexes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum
from functools import cache, lru_cache
from itertools import islice, pairwise
from threading import Lock
from typing import NamedTuple

import Stemmer

from souvenir.core.text import FILLERS, is_blank

ANALYSER_VERSION = 2
"""Stored with every index: terms of two versions are never mixed."""

MAX_TERM_LENGTH = 64
"""Characters of a term; a longer one is cut to its first 64 and not split at capitals."""

LONG_PART = 4
"""Minimum length of every part of a hyphenated compound whose parts count as independent words."""

CACHED_TOKENS = 65_536
"""Distinct tokens whose terms are cached: some 16 MB. Cleared when full, since common tokens return at once."""

CACHED_QUERY_TOKENS = 4_096
"""Distinct tokens of queries whose words are cached, the last used ones: some 2 MB."""

STOP_WORDS = frozenset(
    "a an and are as at be but by did do does for from had has have he her his how i if in is it its me my of on or "
    "she that the their they this to was we were what when where which who whom why will with would you your".split()
)


class WordKind(Enum):
    """Handling of a word: a plain one may be repaired, a stop word is dropped, an exact one is used as it is.

    An open compound joins longer words by hyphens (``boundary-layer``). Texts also write these as two words, and the
    rare joined term would outweigh all others; so texts store it, and a query uses only the parts (measured: recall@10
    +0.6 points on Cranfield, +0.2 on LoCoMo turns). ``follow-up`` and ``wi-fi`` are not open compounds: they are also
    written as one word.
    """

    PLAIN = "plain"
    STOP = "stop"
    EXACT = "exact"
    OPEN_COMPOUND = "open compound"


class QueryWord(NamedTuple):
    """A word as written (casefolded), the term to look up, and its handling."""

    word: str
    term: str
    kind: WordKind


# One token: word characters, joined by single marks between two of them. "{w}" is a word character.
# A comma joins only thousands and a colon only digits; "++" and "#" may end a token (C++, C#).
_TOKEN = r"{w}+(?:(?:[-.'@&+/\\]|_+|(?<=\d),(?=\d\d\d(?!\d))|(?<=\d):(?=\d)){w}+)*(?:\+\+|#(?!{w}))?"
_PLAIN_TOKENS = re.compile(_TOKEN.replace("{w}", r"[^\W_]"))

# What may be a symbol, which its category decides: no punctuation, but combining marks too. Two regional indicators are
# one flag. Lines and blocks that draw tables are no terms, nor is the replacement character.
_SYMBOL = re.compile("[^\\w\\s\x00-\xa1\u2010-\u205e](?:(?<=[\U0001f1e6-\U0001f1ff])[\U0001f1e6-\U0001f1ff])?")
_SYMBOL_CATEGORIES = frozenset(("So", "Sm", "Sc"))
_DRAWN = frozenset((*map(chr, range(0x2500, 0x25A0)), "\ufffd"))

# From the loosest joint to the tightest; a dot between two digits is not a joint but part of a number.
_JOINTS = tuple(re.compile(joint) for joint in (r"[/\\]", "@", r"\.(?!\d)|(?<!\d)\.", "[&+]", "[-_']"))
_DOT, _HYPHEN = 2, 4

_THOUSANDS = re.compile(r"(?<=\d),(?=\d\d\d)")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:.+)", re.DOTALL)
_SHORTENED = frozenset(("s", "m", "re", "ve", "ll", "d"))
_NEGATED = {"ca": "can", "wo": "will", "sha": "shall", "ai": "is"}
_NUMBER = re.compile(r"(v|[a-z]{2,})?(\d+(?:[.:]\d+)*)([a-z]+)?", re.IGNORECASE)
_NUMBER_JOINT = re.compile("[.:]")
_NUMBER_PREFIXES = 3
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CAPITAL_PLURAL = re.compile("[A-Z]+s")
_UNSTEMMED = re.compile(r"[-.'@&+/\\_,:#\d]")

# Han, kana, Hangul, and the scripts of South-East Asia that put no spaces between words (Thai, Lao, Burmese, Khmer).
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)


class Analyser:
    """Turns texts into terms. Thread-safe and deterministic.

    :param language: A Snowball language; the stop list is used for English only.
    :raises ValueError: If Snowball has no such language.
    """

    def __init__(self, language: str = "english") -> None:
        if language not in Stemmer.algorithms():
            raise ValueError(f"no stemmer for {language!r}; known languages: {', '.join(Stemmer.algorithms())}")
        self.language = language
        self._english = language in ("english", "porter")
        self._stop_words: frozenset[str] = STOP_WORDS if self._english else frozenset()
        self._stemmer = Stemmer.Stemmer(language, 0)
        self._stemmer_lock = Lock()
        self._cache: dict[str, tuple[str, ...]] = {}
        self._words_of = lru_cache(CACHED_QUERY_TOKENS)(lambda token: tuple(self._words(token)))

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text to be stored, in order, with repeats."""
        tokens = _tokens(text)
        known = self._cache.get
        found: list[str] = []
        for token in tokens:
            terms = known(token)
            found += self._content_terms(token) if terms is None else terms
        if found:
            return found
        return [word.term for token in tokens for word in self._words(token)] or [word.term for word in _signs(text)]

    def query_words(self, text: str) -> list[QueryWord]:
        """Return the terms of a query in order, with repeats and with their source words, for typo repair.

        They equal those of a text, except that open compounds are dropped (see `WordKind`).
        """
        tokens = _tokens(text)
        words = [word for token in tokens for word in self._words_of(token)]
        return (
            [word for word in words if word.kind not in (WordKind.STOP, WordKind.OPEN_COMPOUND)]
            or words
            or _signs(text)
        )

    def _content_terms(self, token: str) -> tuple[str, ...]:
        terms = tuple(word.term for word in self._words(token) if word.kind is not WordKind.STOP)
        if len(token) <= MAX_TERM_LENGTH:
            if len(self._cache) >= CACHED_TOKENS:
                self._cache.clear()
            self._cache[token] = terms
        return terms

    def _words(self, token: str) -> Iterator[QueryWord]:
        if token.isascii():
            yield from self._spaced_words(token)
            return
        start = 0
        for run in _UNSPACED.finditer(token):
            yield from self._spaced_words(token[start : run.start()])
            yield from _bigrams(run[0])
            start = run.end()
        yield from self._spaced_words(token[start:])

    def _spaced_words(self, token: str) -> Iterator[QueryWord]:
        """Return the words of a token, or of the rest of one, in a script with spaces between words."""
        if token.isalpha():
            yield from self._piece(token)
            return
        token = _without_ending(token.strip("-.'@&/\\_:,").lstrip("+#"))
        timestamp = _TIMESTAMP.fullmatch(token)
        if timestamp:
            yield self._exact(token)
            yield from self._parts(timestamp[1])
            yield from self._parts(timestamp[2])
        elif token:
            yield from self._parts(_THOUSANDS.sub("", token))

    def _parts(self, token: str, loosest: int = 0) -> Iterator[QueryWord]:
        """Return a whole token and its parts, split at its loosest joint first."""
        if not token.isalnum():
            for joint in range(loosest, len(_JOINTS)):
                parts = [part for part in _JOINTS[joint].split(token) if part]
                if len(parts) < 2:
                    continue
                if joint == _DOT and all(len(part) == 1 and part.isalpha() for part in parts):
                    yield self._exact("".join(parts))
                    return
                yield self._joined(token, parts) if joint == _HYPHEN else self._exact(token)
                for part in parts:
                    yield from self._parts(part, joint + 1)
                return
        yield from self._piece(token)

    def _joined(self, token: str, parts: list[str]) -> QueryWord:
        """Return the joined form of a compound; of numbers only (a date, a telephone number) the joints are kept."""
        if all(part.isdigit() for part in parts):
            return self._exact(token)
        whole = self._exact("".join(parts))
        if "-" in token and all(map(self._is_long_word, parts)):
            return whole._replace(kind=WordKind.OPEN_COMPOUND)
        return whole

    def _is_long_word(self, part: str) -> bool:
        return len(part) >= LONG_PART and part.isalpha() and part.casefold() not in self._stop_words

    def _piece(self, piece: str) -> Iterator[QueryWord]:
        """Return the words of a piece without joints: a word, a number, letters and digits, or a camelCase name."""
        if piece.endswith(("++", "#")):
            yield self._exact(piece)
            piece = piece.rstrip("+#")
        number = _NUMBER.fullmatch(piece)
        if number:
            yield from self._number(piece, *number.groups())
        elif piece.islower() or piece.istitle() or piece.isupper() or len(piece) > MAX_TERM_LENGTH:
            yield self._word(piece)
        else:
            yield from self._camel_case(piece)

    def _number(self, piece: str, head: str | None, number: str, tail: str | None) -> Iterator[QueryWord]:
        """``v2.1.0`` -> itself, 2.1.0, 2.1, 2; ``10.5GB`` -> itself, 10.5, 10, gb; ``1990s`` -> 1990."""
        if piece != number and (head or tail not in ("s", "S")):
            yield self._exact(piece)
        yield self._exact(number)
        for joint in islice(_NUMBER_JOINT.finditer(number), _NUMBER_PREFIXES):
            yield self._exact(number[: joint.start()])
        for letters in (head, tail):
            if letters and len(letters) > 1:
                yield from self._piece(letters)

    def _camel_case(self, piece: str) -> Iterator[QueryWord]:
        """``getUserName`` -> getusername, get, user, name; ``eBay`` -> ebay, bay; ``PDFs`` and ``PhD`` stay whole."""
        whole = self._word(piece)
        parts = [part for part in _CAMEL.findall(piece) if len(part) > 1 or part.isdigit()] if piece.isascii() else []
        if max(map(len, parts), default=0) < 3 or _CAPITAL_PLURAL.fullmatch(piece):
            yield whole
            return
        yield whole._replace(kind=WordKind.EXACT)
        for part in parts:
            yield self._exact(part) if part.isdigit() else self._word(part)

    def _word(self, piece: str) -> QueryWord:
        word = piece.casefold()
        if word in self._stop_words:
            return QueryWord(word, word, WordKind.STOP)
        return QueryWord(word, self._term(word), WordKind.PLAIN if word.isalpha() else WordKind.EXACT)

    def _exact(self, piece: str) -> QueryWord:
        word = piece.casefold()
        return QueryWord(word, self._term(word), WordKind.EXACT)

    def _term(self, word: str) -> str:
        """English is stemmed after folding (its stemmer knows a to z), other languages before (theirs know accents)."""
        word = word[:MAX_TERM_LENGTH]
        if self._english:
            return self._stem(fold(word)[:MAX_TERM_LENGTH])
        return fold(self._stem(word))[:MAX_TERM_LENGTH]

    def _stem(self, word: str) -> str:
        if not _is_stemmed(word):
            return word
        with self._stemmer_lock:  # a PyStemmer object has state
            return str(self._stemmer.stemWord(word))


def _is_stemmed(word: str) -> bool:
    return _UNSTEMMED.search(word) is None


def _tokens(text: str) -> list[str]:
    if text.isascii():
        return _PLAIN_TOKENS.findall(text)
    text = normalised(text)
    words = _marked_tokens() if has_marks(text) else _PLAIN_TOKENS
    tokens, end = [], 0
    for symbol in _SYMBOL.finditer(text):
        if unicodedata.category(symbol[0][0]) in _SYMBOL_CATEGORIES and symbol[0] not in _DRAWN:
            tokens += words.findall(text, end, symbol.start())
            tokens.append(symbol[0])
            end = symbol.end()
    return tokens + words.findall(text, end)


def _signs(text: str) -> list[QueryWord]:
    """Return the runs of punctuation in a text that has no words, such as ``:-)``."""
    runs = (run[:MAX_TERM_LENGTH] for run in normalised(text).casefold().split())
    return [QueryWord(run, run, WordKind.EXACT) for run in runs if not is_blank(run)]


def _without_ending(token: str) -> str:
    """Strip possessive and contracted endings: ``Jane's`` -> Jane, ``I'd've`` -> I, ``can't`` -> can."""
    for _ in range(2):
        base, mark, ending = token.rpartition("'")
        if mark and ending.lower() in _SHORTENED:
            token = base
    if token[-3:].lower() != "n't":
        return token
    return _NEGATED.get(token[:-3].lower(), token[:-3])


def _bigrams(run: str) -> Iterator[QueryWord]:
    grams = [run] if len(run) == 1 else map("".join, pairwise(run))
    return (QueryWord(gram, gram, WordKind.EXACT) for gram in grams)


@cache
def _marked_tokens() -> re.Pattern[str]:
    return re.compile(_TOKEN.replace("{w}", rf"(?:[^\W_]{mark_class()}*)"))


# Variants with the same meaning that NFKC does not unify; some are invisible. The last two are marks that count as
# letters until NFKC makes marks of them.
_SPELLINGS = (("\u2019", "'"), ("\u2018", "'"), ("\u02bc", "'"), ("\u00b4", "'"), ("\u2010", "-"), ("\u2011", "-"),
              ("\u2212", "-"), ("\u00ad", ""), ("\u200c", ""), ("\u200d", ""), ("\u2060", ""), ("\ufeff", ""),
              ("\uff9e", "\u3099"), ("\uff9f", "\u309a"), *((filler, " ") for filler in FILLERS))  # fmt: skip

# Latin letters that Unicode does not decompose into a base and a mark.
_UNDECOMPOSED = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "\u0640": ""}
)

# Accents over Latin and Greek letters and Cyrillic ie, Hebrew points, Arabic vowels. Excluded are marks that make
# another letter: Cyrillic short i, the voiced kana, the vowel signs of Indic scripts.
_DIACRITIC = re.compile(
    "(?<=[a-z\u0370-\u03ff\u0435])[\u0300-\u036f]+|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]+"
)

# Normalisation takes quadratic time in a run of marks; 30 is the stream-safe limit of Unicode Annex 15. Marks, and
# signs that are no terms anyway, are the characters beyond ASCII that are not \w.
_MARK_FLOOD = re.compile(r"([^\w\x00-\x7f]{30})[^\w\x00-\x7f]+")

_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")


def normalised(text: str) -> str:
    """Return the text in NFKC, with unified punctuation, ASCII digits, and long runs of combining marks cut short."""
    for written, meant in _SPELLINGS:
        text = text.replace(written, meant)
    text = unicodedata.normalize("NFKC", _MARK_FLOOD.sub(r"\1", text))
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def fold(word: str) -> str:
    """Return a casefolded word without diacritics; unchanged if it consists of nothing else."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word).translate(_UNDECOMPOSED)
    return unicodedata.normalize("NFC", _DIACRITIC.sub("", decomposed)) or word


def has_marks(text: str) -> bool:
    """Return whether a normalised text contains combining marks."""
    return _marks().search(text) is not None


@cache
def mark_class() -> str:
    """Return the combining marks of the basic plane as a regex class; Python's word class excludes them.

    It ends before the variation selectors, which select how the character before them is drawn.
    """
    points = map(chr, range(0x300, 0xFE00))
    return f"[{''.join(point for point in points if unicodedata.category(point) in ('Mn', 'Mc'))}]"


@cache
def _marks() -> re.Pattern[str]:
    return re.compile(mark_class())
