"""Classes of English words, as far as the rules need them; english.txt contains the lists.

A word in no list counts as a noun, so the lists contain common words of other classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path

from souvenir.knowledge.recognition.word_lists import read_sections

_SECTIONS = read_sections(Path(__file__).with_name("english.txt"))

DETERMINERS = _SECTIONS["determiners"]
"""Words that precede a noun: articles, possessives, quantifiers, and numbers in words."""

PREPOSITIONS = _SECTIONS["prepositions"]

SUBJECTS = _SECTIONS["subjects"]
"""Pronouns that precede a verb."""

MODALS = _SECTIONS["modals"]
"""Words that precede a verb in its base form."""

AUXILIARIES = _SECTIONS["auxiliaries"]

FUNCTION_WORDS = _SECTIONS["function words"]
"""Pronouns, conjunctions, adverbs without an ending, greetings and fillers: never part of a concept."""

VERBS = _SECTIONS["verbs"]
"""Verbs in their base form that are never nouns."""

NOUNS_OR_VERBS = _SECTIONS["nouns or verbs"]
"""In their base form; nouns only where a noun is required."""

MORE_NOUNS = _SECTIONS["more nouns than verbs"]
"""The words of `NOUNS_OR_VERBS` that count as nouns before another noun: water bath, credit note."""

VERB_FORMS = _SECTIONS["verb forms"]
"""Irregular forms that are never nouns, and forms in -s that rarely are."""

ADJECTIVES = _SECTIONS["adjectives"]
"""Descriptive adjectives: not part of a phrase, and followed by a noun."""

EMPTY = _SECTIONS["empty nouns"]
"""Nouns without meaning of their own: no phrase ends with one."""

GENERIC = EMPTY | _SECTIONS["generic nouns"]
"""Nouns, and words that count as nouns, that mean little alone; in a longer phrase they may stay."""

WEAK = _SECTIONS["weak nouns"]
"""Abstract nouns, subjects of their own only together with another noun: a single one is no concept."""

CLASSIFYING = _SECTIONS["classifying adjectives"]
"""Adjectives that are part of a phrase if a noun follows; others end in -al or -ic."""

NOUNS_IN_ING = _SECTIONS["nouns in ing"]
"""Nouns in -ing; other words in -ing are nouns only where no verb is possible."""

NOUNS_IN_ED = _SECTIONS["nouns in ed"]
NOUNS_IN_LY = _SECTIONS["nouns in ly"]

NOUNS_LIKE_ADJECTIVES = _SECTIONS["nouns like adjectives"]
"""Nouns in -al, -ic, -ive, -able, -ful, -less, -ous and -ish."""

PLACE_OPENERS = _SECTIONS["place openers"]
"""Words that open a name even at the start of a sentence, if another capital follows."""

IRREGULAR_PLURALS: Mapping[str, str] = {
    plural: one for plural, _, one in (pair.partition(":") for pair in _SECTIONS["irregular plurals"])
}
NO_PLURALS = _SECTIONS["no plurals"]
"""Words in -s that are not plurals, or exist in the plural only."""

FOREIGN = _SECTIONS["foreign small words"]
"""Small words of other languages in Latin letters that are not English words."""


_CACHED_WORDS = 16_384


class WordClass(Enum):
    """Word classes that the rules for phrases distinguish."""

    DETERMINER = "determiner"
    PREPOSITION = "preposition"
    TO = "to"
    SUBJECT = "subject"
    """A pronoun that precedes a verb."""
    BE = "be"
    """A form of "to be": a word in -ing after it is a verb."""
    MODAL = "modal"
    """A word that precedes a verb in its base form: will, can't, don't."""
    FUNCTION = "function"
    VERB = "verb"
    ADJECTIVE = "adjective"
    RELATIONAL = "relational"
    """A classifying adjective, part of the phrase if a noun follows: mental, electric."""
    GERUND = "gerund"
    ACTIVITY = "activity"
    """A word in -ing that is also a noun: camping, painting."""
    NOUN_OR_VERB = "noun or verb"
    NOUNS_OR_VERBS = "nouns or verb with s"
    NOUN = "noun"


_ADJECTIVE_ENDINGS = ("ful", "less", "ous", "ive", "able", "ible", "ish", "esque")
_COMPOUND_ENDINGS = (
    *("based", "driven", "oriented", "focused", "related", "specific", "friendly", "free", "like", "some", "old"),
    *("made", "proof", "worthy", "new", "long", "wide", "high", "time", "level", "quality"),
)
"""Second parts of hyphenated adjectives."""
_BE = frozenset(
    "am is are was were be been being i'm you're he's she's it's we're they're that's "
    "isn't aren't wasn't weren't".split()
)
_CONTRACTED = ("'re", "'ve", "'d", "'ll", "'m", "n't")
_VERB_ENDINGS = ("ize", "izes", "ify", "ifies")
_SMALL_WORDS = frozenset(("by", "to", "the", "so", "of", "and", "not", "on"))
_VOWELS = frozenset("aeiou")


def _inflected(verb: str) -> list[str]:
    """Return a verb's regular forms in -s, -ed and -ing; forms that do not exist are harmless."""
    if verb.endswith("e"):
        return [verb + "s", verb + "d", verb[:-1] + "ing"]
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return [verb[:-1] + "ies", verb[:-1] + "ied", verb + "ing"]
    third = verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")
    return [third, verb + "ed", verb + "ing", verb + verb[-1] + "ed", verb + verb[-1] + "ing"]


_VERBS_ALONE = VERBS | VERB_FORMS
_VERB_FORMS = frozenset(form for verb in VERBS | NOUNS_OR_VERBS for form in _inflected(verb))
_THIRD_PERSONS = frozenset(_inflected(verb)[0] for verb in VERBS)
_THIRD_OR_PLURAL = frozenset(_inflected(verb)[0] for verb in NOUNS_OR_VERBS)


@lru_cache(_CACHED_WORDS)
def class_of(word: str) -> WordClass:  # noqa: C901 - a list of cases, in the order in which they hold
    """Return the class of a word in lower case; a noun by default."""
    if word == "to":
        return WordClass.TO
    if word in MODALS:
        return WordClass.MODAL
    if word in SUBJECTS:
        return WordClass.SUBJECT
    if word in DETERMINERS:
        return WordClass.DETERMINER
    if word in _BE:
        return WordClass.BE
    if word in AUXILIARIES or len(word) == 1 or word.endswith(_CONTRACTED):
        return WordClass.FUNCTION
    if word in PREPOSITIONS:
        return WordClass.PREPOSITION
    if word in FUNCTION_WORDS:
        return WordClass.FUNCTION
    if word in NOUNS_OR_VERBS and word not in VERB_FORMS:
        return WordClass.NOUN_OR_VERB
    if word in ADJECTIVES or _is_comparative(word):
        return WordClass.ADJECTIVE
    if word in _VERBS_ALONE or word in _THIRD_PERSONS:
        return WordClass.VERB
    if word in CLASSIFYING:
        return WordClass.RELATIONAL
    if word in GENERIC:
        return WordClass.NOUN
    if word in _THIRD_OR_PLURAL:
        return WordClass.NOUNS_OR_VERBS
    return _class_by_ending(word)


def _is_comparative(word: str) -> bool:
    """Return True for forms like `faster`, `bigger` and `easiest`."""
    for ending in ("est", "er"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2:
            single = stem[:-1] if stem[-1] == stem[-2] else stem
            return not ADJECTIVES.isdisjoint(
                (stem, single, stem + "e", stem[:-1] + "y" if stem.endswith("i") else stem)
            )
    return False


def _class_by_ending(word: str) -> WordClass:
    if word.endswith("ing") and len(word) > 4:
        return WordClass.ACTIVITY if word in NOUNS_IN_ING else WordClass.GERUND
    if word.endswith("ed") and len(word) > 3 and word not in NOUNS_IN_ED:
        return WordClass.ADJECTIVE
    if word.endswith("ly") and len(word) > 3 and word not in NOUNS_IN_LY:
        return WordClass.FUNCTION
    if word in NOUNS_LIKE_ADJECTIVES or word.removesuffix("s") in NOUNS_LIKE_ADJECTIVES:
        return WordClass.NOUN
    if word.startswith("un") and (word[2:] in ADJECTIVES):
        return WordClass.ADJECTIVE
    head, _, tail = word.rpartition("-")
    if head and (tail in _COMPOUND_ENDINGS or head in DETERMINERS or not _SMALL_WORDS.isdisjoint(word.split("-"))):
        return WordClass.ADJECTIVE
    if len(word) > 5 and word.endswith(_ADJECTIVE_ENDINGS):
        return WordClass.ADJECTIVE
    if len(word) > 5 and word.endswith(_VERB_ENDINGS):
        return WordClass.VERB
    if len(word) > 4 and word.endswith(("al", "ic")):
        return WordClass.RELATIONAL
    return WordClass.NOUN


def is_known(word: str) -> bool:
    """Return True if a list contains the word, so that a capital at the start of a sentence does not make it a name."""
    return class_of(word) is not WordClass.NOUN or word in GENERIC or word in _VERB_FORMS
