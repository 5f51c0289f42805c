"""Evidence for an English name other than its capital: what it does, what is done with it, and the lists of names.

All functions take the words of a sentence, with None for marks, or the folded words, and the place of one of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.exact import Token
from souvenir.knowledge.recognition.foreign import ENGLISH, SPANISH
from souvenir.knowledge.recognition.gazetteer import (
    ANIMALS,
    CLASSES,
    COMMON_WORDS,
    GIVEN_NAMES,
    HEADS,
    KNOWN,
    KNOWN_COMPOUNDS,
    MAKERS,
    PHRASE_HEADS,
    RELATIVES,
    ROLES,
)
from souvenir.knowledge.recognition.spelling import singular
from souvenir.knowledge.recognition.vocabulary import GENERIC, WEAK, WordClass, class_of

MIN_UNKNOWN_CHARS = 4
"""Shorter unknown words in small letters are abbreviations and slips."""

MIN_LINE_CHARS = 3
"""Shortest name of a line of products: the series of a model."""

MAX_WORDS_OF_COMPOUND = 3

USES = frozenset("using use uses install installed installing uninstall configure run deploy".split())
"""Words before the name of a tool."""

_OTHER_FRAMES = (
    *("subscribed to", "subscribe to", "account with", "account at", "banking with", "bank with", "logged into"),
    *("log into", "sign into", "signed into", "powered by", "hosted on", "hosted by", "deployed on", "integrate with"),
    *("integrated with", "insured with", "employed by", "employed at", "hired by", "interview at", "internship at"),
    *("ordered from", "order from", "migrated from", "migrate from", "imported from", "exported to", "plugin for"),
)
_FRAMES = frozenset(
    ("set up", "setting up", "switch to", "switched to", "migrate to", "migrated to", "moved to", "work at", "works at")
) | {"worked at", "working at", "job at", "works for", "worked for", "shift at", *_OTHER_FRAMES}
"""Two words before the name of a tool or of a workplace."""
_ENDS_OF_FRAMES = frozenset(frame.split()[1] for frame in _FRAMES)

_UNUSUAL = (WordClass.NOUN, WordClass.GERUND)
"""Classes of words in no list: aibling."""

_ENDS = (WordClass.DETERMINER, WordClass.PREPOSITION, WordClass.TO, WordClass.FUNCTION)

_AGENT_VERBS = frozenset(
    "declined rejected refused charged refunded invoiced billed paid wrote replied announced promised approved "
    "cancelled canceled hired fired emailed phoned texted quoted shipped delivered sponsored published".split()
)
"""Past forms of verbs of which someone, or an organisation, is the subject."""

_STATES = frozenset("is isn't was has had does doesn't did didn't can can't won't".split())
"""Verbs before which a noun in the singular needs an article, so one without is a name: "Confluence is read-only"."""

_MODELS = frozenset("pro max mini plus ultra se air lite xl fe premium".split())
_LINES = (WordClass.NOUN, WordClass.NOUN_OR_VERB, WordClass.ADJECTIVE)
_PAPER = frozenset(("a3", "a4", "a5"))
_MODEL_NUMBER = re.compile("(?=[a-z-]*\\d)[a-z]{1,3}-?\\d{1,4}[a-z]{0,3}\\d{0,2}")
_NO_ENDS = (WordClass.NOUN, WordClass.NOUN_OR_VERB, WordClass.NOUNS_OR_VERBS, WordClass.DETERMINER)
_ON = frozenset("on via over".split())
_BEFORE_TOOLS = _ON | frozenset("in my our his her their your with from".split())

_TOOL_KINDS = (ConceptKind.PRODUCT, ConceptKind.ORGANISATION)
_NOUNS = (WordClass.NOUN, WordClass.NOUN_OR_VERB, WordClass.NOUNS_OR_VERBS, WordClass.RELATIONAL)
_NO_HEADS = frozenset(("team", "company"))
"""Heads of phrases that continue no name."""
_BEFORE_HEADS = frozenset(("de", "del"))
_CLASS_FRAMES = frozenset("like called named".split())
"""Words between the class of a tool and its name: a library like zorblax."""

_NO_AGENTS = GENERIC | WEAK | RELATIVES | ROLES | ANIMALS | frozenset(PHRASE_HEADS)


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
    found = {}
    for place, word in enumerate(folded):
        if word in _COMPOUND_STARTS:
            for end in range(place + 2, min(len(folded), place + MAX_WORDS_OF_COMPOUND) + 1):
                name = " ".join(folded[place:end])
                is_place = lower and name in _LOWER_PLACES
                if (
                    is_place
                    or name in _LOWER_COMPOUNDS
                    or (name in KNOWN_COMPOUNDS and _is_written_large(words[place:end]))
                ):
                    found[place] = end
    return found


def _is_written_large(words: Sequence[Token | None]) -> bool:
    """Return True if the first and the last word have a capital: Pets at Home."""
    return all(word is not None and word.text[0].isupper() for word in (words[0], words[-1]))


def _is_model(name: Sequence[str], ahead: str) -> bool:
    """Return True for a word that continues the name of a product, in small letters too: iphone 15 pro, galaxy s23."""
    if KNOWN.get(name[0]) not in (ConceptKind.PRODUCT, ConceptKind.ORGANISATION) and " ".join(name) not in KNOWN:
        return False
    return (ahead in _MODELS and (len(name) > 1 or KNOWN.get(name[0]) is ConceptKind.PRODUCT)) or (
        _MODEL_NUMBER.fullmatch(ahead) is not None
    )


def words_of_model(folded: Sequence[str], first: int, end: int) -> int:
    """Return by how many words a model continues the name of a product, after the name of its line too: lg oled c3."""
    line, *ahead = folded[end : end + 2]
    if _is_model(folded[first:end], line):
        return 1
    is_line = line.isalpha() and len(line) >= MIN_LINE_CHARS and class_of(line) in _LINES and line not in GENERIC
    is_made = is_line and end == first + 1 and folded[first] in MAKERS
    return 2 if is_made and ahead and ahead[0] not in _PAPER and _MODEL_NUMBER.fullmatch(ahead[0]) else 0


def is_tool_of_common_word(words: Sequence[Token | None], folded: Sequence[str], place: int) -> bool:
    """Return True for a well-known product in small letters if its name is a verb: "my kindle", "on zoom"."""
    if place == 0:
        return False
    ahead = words[place + 1] if place + 1 < len(words) else None
    if ahead is not None and class_of(ahead.word) in _NO_ENDS:
        return False
    of, before = class_of(folded[place]), folded[place - 1]
    return (of is WordClass.VERB and before in _BEFORE_TOOLS) or (of is WordClass.NOUN_OR_VERB and before in _ON)


def is_in_frame(words: Sequence[Token | None], folded: Sequence[str], place: int) -> bool:
    """Return True for an unknown word in small letters where a tool or a workplace is named: "install zorblax"."""
    if place == 0:
        return False
    before = folded[place - 1]
    is_example = before in _CLASS_FRAMES and place > 1 and CLASSES.get(folded[place - 2]) in _TOOL_KINDS
    is_framed = before in _ENDS_OF_FRAMES and " ".join(folded[max(0, place - 2) : place]) in _FRAMES
    if not (is_example or is_framed or before in USES):
        return False
    word = folded[place]
    if len(word) < MIN_UNKNOWN_CHARS or not word.isalpha() or (singular(word) != word and not is_example):
        return False
    if (class_of(word) is not WordClass.NOUN and not is_example) or _is_of_common_words(word):
        return False
    if place + 1 == len(words):
        return True
    ahead = words[place + 1]
    return ahead is not None and class_of(ahead.word) in _ENDS


def is_subject(words: Sequence[Token | None], word: str) -> bool:
    """Return True if a word that opens a sentence can only be the name of what acts: "Wise charges a fee"."""
    verb = words[1] if len(words) > 1 else None
    if verb is None:
        return False
    if verb.word in _AGENT_VERBS and class_of(word) is WordClass.NOUN:
        return singular(word) == word and word not in _NO_AGENTS
    is_name = KNOWN.get(word) in (ConceptKind.ORGANISATION, ConceptKind.PRODUCT)
    if is_name and verb.word.endswith("ed"):
        ahead = words[2] if len(words) > 2 else None
        return ahead is not None and class_of(ahead.word) is WordClass.DETERMINER
    if is_name and verb.word in _STATES:
        return True
    return is_third_person(words, 1) and (is_name or class_of(word) in (WordClass.VERB, WordClass.ADJECTIVE))


def is_third_person(words: Sequence[Token | None], place: int) -> bool:
    """Return True for a verb in -s that is no noun."""
    token = words[place] if place < len(words) else None
    return token is not None and token.word.endswith("s") and class_of(token.word) is WordClass.VERB


def with_head(
    words: Sequence[Token | None], folded: Sequence[str], name: tuple[int, int], language: str
) -> tuple[int, int]:
    """Return the start and the end of a name with its head in small letters: "LGBTQ center", "maratón de Sevilla"."""
    first, end = name
    if language == ENGLISH:
        last, ahead = words[end - 1], words[end] if end < len(words) else None
        if ahead is None or last is None or last.text.endswith(("'s", "'")) or folded[first] in GIVEN_NAMES:
            return name
        if folded[end] in PHRASE_HEADS and ahead.word not in _NO_HEADS:
            return first, end + 1
        second = folded[end + 1] if end + 1 < len(words) else ""
        is_head = PHRASE_HEADS.get(second) is ConceptKind.ORGANISATION and second not in _NO_HEADS
        return (first, end + 2) if is_head and class_of(ahead.word) in _NOUNS else name
    if language == SPANISH and first > 0:
        if folded[first - 1] in HEADS:
            return first - 1, end
        if folded[first - 1] in _BEFORE_HEADS:
            heads = (place for place in (first - 2, first - 3) if place >= 0 and folded[place] in HEADS)
            return next(heads, first), end
    return name


def _is_of_common_words(word: str) -> bool:
    """Return True for two common words in one: whiteboard."""
    return any(word[:cut] in COMMON_WORDS and word[cut:] in COMMON_WORDS for cut in range(3, len(word) - 2))
