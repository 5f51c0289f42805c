"""Extract the concepts that a text mentions, by rules.

Phrases are found in English; names need a script with capitals; hashtags and code are found in any language. In code
blocks only identifiers count. The result is a function of the text alone.

Questions name concepts less carefully than messages ("lisbon camera?"), so `keys_in_question` returns every sequence of
up to three words that could be a key; the caller looks up which of them exist.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import structlog

from souvenir.core.concept_kinds import NAMED_KINDS, UNTYPED
from souvenir.core.types import ConceptKind, Mentioned, MessageRole
from souvenir.index.analyser import fold, normalised
from souvenir.knowledge.recognition.capitals import has_capital, is_heading
from souvenir.knowledge.recognition.chinese import chinese_mentions, is_chinese
from souvenir.knowledge.recognition.exact import Sort, Token, is_brand, tokens
from souvenir.knowledge.recognition.foreign import ENGLISH, nouns, typed_words
from souvenir.knowledge.recognition.gazetteer import COMMON_WORDS, GIVEN_NAMES, HEADS, KNOWN, SMALL_WORDS, TITLES
from souvenir.knowledge.recognition.names import Name, names
from souvenir.knowledge.recognition.phrases import noun_runs, phrases
from souvenir.knowledge.recognition.spelling import key_of, singular
from souvenir.knowledge.recognition.vocabulary import (
    AUXILIARIES,
    DETERMINERS,
    FOREIGN,
    FUNCTION_WORDS,
    MODALS,
    PREPOSITIONS,
    SUBJECTS,
    WordClass,
    class_of,
)
from souvenir.learning.transcripts.hygiene import screened
from souvenir.learning.transcripts.turns import TurnRole

__all__ = ["MAX_CHARS_READ", "MAX_MENTIONS", "RULES_VERSION", "Mentioned", "mentioned"]

RULES_VERSION = 9
"""Incremented whenever the result for some text changes."""

MAX_MENTIONS = 16
"""Maximum number of mentions of a text: the most frequent ones, names before phrases."""

MAX_CHARS_READ = 20_000
"""Only the beginning of a longer text is analysed, which bounds the time."""

_FENCE = re.compile("^ {0,3}(?:```|~~~)", re.MULTILINE)

_ENGLISH = DETERMINERS | PREPOSITIONS | FUNCTION_WORDS | AUXILIARIES | MODALS | SUBJECTS | {"to"}

OTHER = ""
"""Any language without rules of its own."""

_RARE_LETTERS = re.compile("[\u0100-\u024f]")
"""Letters of which a text without small words is in none of the languages with rules: ş, ł, ř."""

_VERSION = re.compile(r"[vV]\d[\d.]*|\d{1,2}(?:\.\d{1,4}){1,3}")
"""A version, which makes a product of the name before it: v2, 3.11."""

_RELEASE = re.compile(r"v?\d+\.\d+\.\d+")
"""A version in full, which makes a product of an uncommon word before it: lazysizes 5.3.2."""

_BEFORE_INITIALS = (WordClass.PREPOSITION, WordClass.TO, WordClass.FUNCTION)

_MARKUP = frozenset("#*|>_=")
_STOPS = frozenset(".!?。！？")
_BULLETS = frozenset("-*•–—")

_WEIGHTS = {
    **dict.fromkeys(NAMED_KINDS, 3.0),
    ConceptKind.HASHTAG: 3.0,
    ConceptKind.CODE: 1.5,
    ConceptKind.PHRASE: 1.5,
}


def mentioned(text: str) -> tuple[Mentioned, ...]:
    """Return the mentions of a text, each key once, in order of appearance; at most `MAX_MENTIONS`.

    The form is that of the first mention of a key. Only the first `MAX_CHARS_READ` characters are analysed.
    """
    text = normalised(text[:MAX_CHARS_READ])[:MAX_CHARS_READ]
    found = sorted(_all_mentions(text), key=lambda place_and_mention: place_and_mention[0])
    codes = {mention.key: mention.form for _, mention in found if mention.kind is ConceptKind.CODE}
    brand = next((key for key, form in codes.items() if len(codes) == 1 and is_brand(form)), None)
    counts: dict[str, float] = {}
    first: dict[str, Mentioned] = {}
    for _, mention in found:
        counts[mention.key] = counts.get(mention.key, 0.0) + _WEIGHTS[mention.kind]
        typed = replace(mention, kind=ConceptKind.PRODUCT) if mention.key == brand else mention
        known = first.setdefault(mention.key, typed)
        if known.kind in UNTYPED and mention.kind not in UNTYPED:
            first[mention.key] = replace(known, kind=mention.kind)
    kept = set(sorted(first, key=lambda key: -counts[key])[:MAX_MENTIONS])
    return tuple(mention for key, mention in first.items() if key in kept)


def _all_mentions(text: str) -> Iterator[tuple[int, Mentioned]]:
    for start, piece, is_code in _pieces(text):
        cut = list(tokens(piece))
        for token in cut:
            if token.mention and not (is_code and token.mention.kind is not ConceptKind.CODE):
                yield start + token.start, token.mention
        if is_code:
            continue
        covered: set[int] = set()
        for place, mention in chinese_mentions(piece) if is_chinese(piece) else ():
            covered.update(range(place, place + len(mention.form)))
            yield start + place, mention
        for place, mention in _worded(cut):
            if place not in covered:
                yield start + place, mention


def _pieces(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield prose and code blocks alternately; an unclosed block extends to the end."""
    start, is_code = 0, False
    for fence in _FENCE.finditer(text):
        yield start, text[start : fence.start()], is_code
        start, is_code = fence.end(), not is_code
    yield start, text[start:], is_code


def _worded(cut: Sequence[Token]) -> Iterator[tuple[int, Mentioned]]:
    """Yield names and phrases, which need sentences."""
    sentences = list(_sentences(cut))
    headings = [
        is_heading([word for word in sentence.words if word], marked=sentence.marked, ended=sentence.ended)
        for sentence in sentences
    ]
    lower = all(token.text.islower() or token.text == "I" for token in cut if token.sort is Sort.WORD)
    seen = {
        token.word
        for sentence, heading in zip(sentences, headings, strict=True)
        if not heading
        for token in sentence.words[1:]
        if token and has_capital(token)
    }
    language, alone = _language_of(cut), len(sentences) == 1
    counts = Counter(token.word for token in cut if token.sort is Sort.WORD)
    repeated = {word for word, count in counts.items() if count > 1}
    named = [
        [
            name
            for name in names(sentence.words, seen, language, lower=lower)
            if not heading or _is_sure(name, sentence.words)
        ]
        for sentence, heading in zip(sentences, headings, strict=True)
    ]
    versions = {word.start: ahead.text for word, ahead in pairwise(cut) if _may_be_version(ahead) and word.word}
    defined = {name.mention.key: name.mention.kind for found in named for name in found if name.is_defined}
    for sentence, found in zip(sentences, named, strict=True):
        words = list(sentence.words)
        for name in found:
            kind = defined.get(name.mention.key, name.mention.kind)
            last = words[name.end - 1]
            if kind is ConceptKind.NAME and last is not None and _VERSION.fullmatch(versions.get(last.start, "")):
                kind = ConceptKind.PRODUCT
            yield name.start, name.mention if kind is name.mention.kind else replace(name.mention, kind=kind)
            words[name.first : name.end] = [None] * (name.end - name.first)
        for place, word in enumerate(words) if versions else ():
            if word is None or not COMMON_WORDS.isdisjoint((word.word, singular(word.word))):
                continue
            if _RELEASE.match(versions.get(word.start, "")):
                yield word.start, Mentioned(key_of(word.text), word.text, ConceptKind.PRODUCT)
                words[place] = None
        words = [word if word is not None and _is_latin(word.word[:1]) else None for word in words]
        if language == ENGLISH:
            yield from phrases(words, alone=alone, named=found, repeated=repeated)
        elif language in SMALL_WORDS:
            yield from typed_words(words, language)


def _is_latin(letter: str) -> bool:
    """Return True for a letter of the scripts in which phrases are found: Latin, also with accents."""
    return letter.isalpha() and (letter < "\u0250" or "\u1e00" <= letter < "\u1f00")


def _is_sure(name: Name, words: Sequence[Token | None]) -> bool:
    """Return True for a name that is told from the other capitalised words of a heading.

    It is well-known, or an unknown word after a preposition: "NDA with Zorblax:".
    """
    if name.mention.key in KNOWN and name.mention.key not in COMMON_WORDS:
        return True
    last = words[name.end - 1]
    if name.end - name.first > 1 and name.mention.kind is ConceptKind.ORGANISATION and last is not None:
        first = words[name.first]
        return first is not None and first.word not in COMMON_WORDS and fold(last.word) in HEADS
    before, first = words[name.first - 1] if name.first else None, words[name.first]
    if before is None or first is None or COMMON_WORDS & {first.word, singular(first.word)}:
        return False
    return class_of(before.word) in (WordClass.PREPOSITION, WordClass.TO)


def _may_be_version(token: Token) -> bool:
    """Return True for a number, or for a version, and not for a date."""
    return token.sort is Sort.VOID or (token.mention is not None and token.mention.kind is ConceptKind.CODE)


def noun_phrases(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the nouns of a text as it writes them, names too, each with the nouns before it, and the language there.

    English, German, Spanish and Dutch; the last three without those before, Spanish with one after "de".
    """
    for _, piece, is_code in _pieces(normalised(text[:MAX_CHARS_READ])):
        cut = [] if is_code else list(tokens(piece))
        language = _language_of(cut)
        for sentence in _sentences(cut):
            words = [word if word is not None and _is_latin(word.word[:1]) else None for word in sentence.words]
            if language == ENGLISH:
                found = noun_runs(words)
            else:
                found = list(nouns(words, language)) if language in SMALL_WORDS else []
            yield from (([word.text for word in run], language) for run in found)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """Words, with None for marks and recognised items.

    :param marked: True if it follows a heading or list marker, or precedes a colon.
    :param ended: True if it ends with a full stop, so it is no heading.
    """

    words: Sequence[Token | None]
    marked: bool
    ended: bool


def _sentences(cut: Sequence[Token]) -> Iterator[_Sentence]:
    """Yield sentences; a quote starts a new one too, and a marker applies up to the end of the line."""
    words: list[Token | None] = []
    marked, number = False, False
    for token in cut:
        if token.sort is Sort.WORD:
            words.append(token)
        elif token.text == "." and _is_initial(words):
            continue
        elif token.sort in (Sort.END, Sort.QUOTE):
            ends_line = "\n" in token.text
            if words:
                yield _Sentence(words, marked or token.text[0] == ":", token.text[0] in _STOPS)
            marked = (marked and not ends_line) or number or token.text.strip() in _BULLETS
            words = []
        elif words or _is_han(token):
            # A number or an ampersand may be part of a name.
            words.append(token if token.text == "&" or token.text.isdigit() else None)
        else:
            marked = marked or token.text in _MARKUP
        number = token.sort is Sort.VOID and not words
    if words:
        yield _Sentence(words, marked, ended=False)


def _is_han(token: Token) -> bool:
    """Return True for a letter after which a capital is not that of the start of a sentence: 在Excel里."""
    return token.sort is Sort.VOID and "\u4e00" <= token.text[0] <= "\u9fff"


def _is_initial(words: Sequence[Token | None]) -> bool:
    """Return True if the last word is the initial of a person, which a full stop does not end: J. Okafor."""
    if not words or words[-1] is None or len(words[-1].text) != 1 or not words[-1].text.isupper():
        return False
    before = words[-2] if len(words) > 1 else None
    word = "" if before is None else before.word.rstrip(".")
    return not word or word in GIVEN_NAMES or word in TITLES or class_of(word) in _BEFORE_INITIALS


def _language_of(cut: Sequence[Token]) -> str:
    """Return the language of which the text has the most small words; English if there are none, empty for others."""
    words = [token.word for token in cut if token.sort is Sort.WORD]
    folded = [fold(word) for word in words]
    counts = {ENGLISH: sum(map(_ENGLISH.__contains__, words))}
    counts |= {language: sum(map(small.__contains__, folded)) for language, small in SMALL_WORDS.items()}
    counts[OTHER] = sum(map(FOREIGN.__contains__, words))
    if not any(counts.values()) and _RARE_LETTERS.search(" ".join(words)):
        return OTHER
    return max(counts, key=lambda language: counts[language])


MAX_WORDS = 3
"""Maximum number of words in a tried key."""

MAX_TRIED_WORDS = 64
"""Only the first words of a longer question are tried."""

_WORD = re.compile(r"[^\s,;:!?\"()\[\]{}<>]+")


def keys_in_question(text: str) -> tuple[str, ...]:
    """Return the keys of the text's mentions, then of its word sequences, longer ones first, without duplicates."""
    text = text[:MAX_CHARS_READ]
    words = _WORD.findall(text)[:MAX_TRIED_WORDS]
    keys = [mention.key for mention in mentioned(text)]
    for count in range(MAX_WORDS, 0, -1):
        for start in range(len(words) - count + 1):
            key = key_of(" ".join(words[start : start + count]))
            *before, last = key.split(" ")
            keys += [key, " ".join([*before, singular(last)])]
    return tuple(dict.fromkeys(key for key in keys if key))


log = structlog.get_logger(__name__)


def mentions_in(text: str, role: MessageRole | None) -> tuple[Mentioned, ...]:
    """Return the mentions of a message or, without a role, of a memory; system messages have none."""
    if role is MessageRole.SYSTEM:
        return ()
    try:
        return mentioned(said(text, role))
    except Exception:  # the boundary of background work: one text must not block the queue
        log.exception("mention_extraction_failed", chars=len(text))
        return ()


@lru_cache(1)
def said(text: str, role: MessageRole | None) -> str:
    """Return a text without the parts that are never learned from; the last one is kept, since it is read twice."""
    turn = TurnRole.ASSISTANT if role is MessageRole.ASSISTANT else TurnRole.USER
    parts, done = [], 0
    for span in screened(text, turn):
        parts += [text[done : span.start], "\n"]
        done = span.end
    return "".join([*parts, text[done:]])
