"""Evidence for an English name other than its capital: what it does, what is done with it, and the lists of names.

All functions take the words of a sentence, with None for marks, or the folded words, and the place of one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.exact import Token
from souvenir.knowledge.recognition.gazetteer import (
    ANIMALS,
    COMMON_WORDS,
    KNOWN,
    KNOWN_COMPOUNDS,
    PHRASE_HEADS,
    RELATIVES,
    ROLES,
)
from souvenir.knowledge.recognition.spelling import singular
from souvenir.knowledge.recognition.vocabulary import GENERIC, WEAK, WordClass, class_of

MIN_UNKNOWN_CHARS = 4
"""Shorter unknown words in small letters are abbreviations and slips."""

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

_ENDS = (WordClass.DETERMINER, WordClass.PREPOSITION, WordClass.TO, WordClass.FUNCTION)

_AGENT_VERBS = frozenset(
    "declined rejected refused charged refunded invoiced billed paid wrote replied announced promised approved "
    "cancelled canceled hired fired emailed phoned texted quoted shipped delivered sponsored published".split()
)
"""Past forms of verbs of which someone, or an organisation, is the subject."""

_STATES = frozenset("is isn't was has had does doesn't did didn't can can't won't".split())
"""Verbs before which a noun in the singular needs an article, so one without is a name: "Confluence is read-only"."""

_NO_AGENTS = GENERIC | WEAK | RELATIVES | ROLES | ANIMALS | frozenset(PHRASE_HEADS)
_COMPOUND_STARTS = frozenset(name.split()[0] for name in KNOWN_COMPOUNDS)


def places_in_compounds(folded: Sequence[str]) -> Iterator[int]:
    """Yield the places of the words of well-known names of several words."""
    for place, word in enumerate(folded):
        if word in _COMPOUND_STARTS:
            for end in range(place + 2, place + MAX_WORDS_OF_COMPOUND + 1):
                if " ".join(folded[place:end]) in KNOWN_COMPOUNDS:
                    yield from range(place, end)


def is_in_frame(words: Sequence[Token | None], folded: Sequence[str], place: int) -> bool:
    """Return True for an unknown word in small letters where a tool or a workplace is named: "install zorblax"."""
    if place == 0 or not (folded[place - 1] in USES or " ".join(folded[max(0, place - 2) : place]) in _FRAMES):
        return False
    word = folded[place]
    if len(word) < MIN_UNKNOWN_CHARS or not word.isalpha() or singular(word) != word:
        return False
    if class_of(word) is not WordClass.NOUN or _is_of_common_words(word):
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


def _is_of_common_words(word: str) -> bool:
    """Return True for two common words in one: whiteboard."""
    return any(word[:cut] in COMMON_WORDS and word[cut:] in COMMON_WORDS for cut in range(3, len(word) - 2))
