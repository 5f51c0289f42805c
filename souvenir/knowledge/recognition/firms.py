"""Find the names of firms in small letters: after a preposition, by their trade or an ampersand."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from souvenir.knowledge.recognition.exact import Token
from souvenir.knowledge.recognition.gazetteer import (
    COMMON_WORDS,
    FIRMS,
    FIRST_TRADES,
    KNOWN,
    TIME_WORDS,
)
from souvenir.knowledge.recognition.spelling import singular
from souvenir.knowledge.recognition.vocabulary import WordClass, class_of

_FROM = frozenset("from at bei beim zu zum zur von bij van".split())
"""Prepositions before a firm that has no article: "bei autohaus krause"."""

_OF = frozenset("von van zu zum zur".split())
"""Also before two plain nouns, of which there are no lists in German and Dutch: "van brood & kaas"."""

_TRADES = FIRST_TRADES | FIRMS
_AND = "&"
_MIN_CHARS = 4
_VERB = re.compile("(?:ge|be|ver|er|ent|ab|an|auf|aus|ein|vor|op|af|in).{2,}[td]|ge.{2,}en|.*(?:(?<!s)en|ieren)")
"""German and Dutch participles and infinitives, which follow a firm without a name: "bei autohaus gekauft"."""


def ends_of_firms(words: Sequence[Token | None], folded: Sequence[str], no_names: Collection[str]) -> dict[int, int]:
    """Return the end of each firm in small letters, by the place of its first word.

    :param words: Of a sentence, with None for marks.
    :param no_names: Folded words that begin no name in the language of the text.
    """
    ends = {}
    for place in range(1, len(folded)):
        token = words[place]
        if folded[place - 1] in _FROM and token is not None and token.text.islower():
            end = _end_of_firm(folded, place, no_names)
            if end > place:
                ends[place] = end
    return ends


def _end_of_firm(folded: Sequence[str], place: int, no_names: Collection[str]) -> int:
    """Return the end of the firm that begins here; `place` if there is none."""
    word, *ahead = folded[place : place + 3]
    trade, _, owner = word.partition("-")
    if trade in _TRADES and _may_be_name(owner, no_names):
        return place + 1
    if word in FIRMS and ahead and _may_be_name(ahead[0], no_names):
        return place + 2
    if len(ahead) < 2 or ahead[0] != _AND or folded[place - 1] in _OF:
        return place
    pair = (word, ahead[1])
    is_pair = all(_may_be_name(one, no_names) for one in pair) and not all(one in KNOWN for one in pair)
    return place + 3 if is_pair else place


def _may_be_name(word: str, no_names: Collection[str]) -> bool:
    """Return True for an unknown word: fliesen-zorbler, zorbler & quibb."""
    if len(word) < _MIN_CHARS or not word.isalpha() or word in no_names or word in TIME_WORDS:
        return False
    is_common = not COMMON_WORDS.isdisjoint((word, singular(word)))
    return class_of(word) is WordClass.NOUN and not is_common and _VERB.fullmatch(word) is None
