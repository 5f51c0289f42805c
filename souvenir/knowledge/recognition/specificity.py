"""Decide whether a noun phrase of an English sentence is specific enough to be a concept of its own.

A compound is specific if its words are ("sourdough starter"); one vague word among them is allowed where the others
outweigh it ("birthday paradox", "freelance video project"). A single noun is specific only with further evidence: it is
the author's own ("my essay"), opens a sentence without an article, is long and rare, or is the object of a verb of
preference or practice ("allergic to peanuts"). After an article it mostly refers to something that the text has named
before, or that is part of the scene, unless the text repeats it with a complement ("the probability of").
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from souvenir.knowledge.recognition.gazetteer import COMMON_WORDS
from souvenir.knowledge.recognition.spelling import singular
from souvenir.knowledge.recognition.vocabulary import DETERMINERS, GENERIC, WEAK, WordClass, class_of

MIN_LONG_CHARS = 7
"""Length from which a noun counts as long: short words that no list contains are mostly slips and abbreviations."""

_LEANINGS = frozenset(
    "love loves loved enjoy enjoys enjoyed hate hates hated prefer prefers into allergic do does play plays learn "
    "learns learning study studies studying teach teaches grow grows collect collects own owns as".split()
)
"""Words whose object says what someone likes, does or is."""
_BETWEEN = frozenset(("a", "an", "to", "of", "my"))
_OWN = frozenset(("my", "our"))
_NOUNS = (WordClass.NOUN, WordClass.ACTIVITY)
_DESCRIBES = (WordClass.ADJECTIVE, WordClass.RELATIONAL, WordClass.ACTIVITY)
_CONTINUES = (WordClass.DETERMINER, WordClass.ADJECTIVE, WordClass.NOUN, WordClass.NOUN_OR_VERB)


def is_specific(words: Sequence[str], before: Sequence[str], after: str, repeated: Collection[str]) -> bool:
    """Return True if a phrase is specific.

    :param words: Its words in lower case. :param before: The words before it in the sentence, nearest first, with an
        empty text for a mark or a name. :param after: The word after it; empty for a mark, a name or the end.
    :param repeated: The words that the text contains more than once.
    """
    if len(words) == 1:
        return _is_specific_noun(words[0], before, after, words[0] in repeated)
    vague = sum(map(_is_vague, words))
    is_described = bool(before and before[0]) and class_of(before[0]) is WordClass.ADJECTIVE
    first, head = words[0], words[-1]
    if class_of(first) is WordClass.RELATIONAL and (vague or len(words) == 2):
        return vague == 0 and not is_described and singular(head) == head
    if vague == 0:
        return True
    if vague > 1 or any(singular(word) != word for word in words[:-1]):
        return False
    if len(words) > 2:
        return True
    is_weak = _is_vague(head) and head not in GENERIC and singular(head) == head
    return is_weak and not is_described and "-" not in first and class_of(first) in _NOUNS


def _is_specific_noun(noun: str, before: Sequence[str], after: str, is_repeated: bool) -> bool:
    nearest = before[0] if before else ""
    if "-" in noun or noun.endswith("ness") or class_of(noun) not in _NOUNS:
        return False
    if (after and class_of(after) in _CONTINUES) or (nearest and class_of(nearest) in _DESCRIBES):
        # A verb, or a part of a phrase.
        return False
    if next((word for word in before if word not in _BETWEEN), "") in _LEANINGS:
        return True
    if singular(noun) != noun:
        return False
    if nearest == "the" and after == "of":
        return is_repeated
    if noun.endswith("ity"):
        return False
    if not before or nearest in _OWN:
        return class_of(noun) is WordClass.NOUN
    if nearest in DETERMINERS or nearest == "to":
        return False
    return len(noun) >= MIN_LONG_CHARS and noun not in COMMON_WORDS


def _is_vague(word: str) -> bool:
    one = singular(word)
    return not {word, one}.isdisjoint(WEAK) or not {word, one}.isdisjoint(GENERIC)
