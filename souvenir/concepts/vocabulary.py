"""English words by what they do in a sentence, as far as the rules need to know; english.txt holds them.

A word that is in no list is taken for a noun, so the lists hold what is common and is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_SECTION = re.compile(r"^\[(.+)\]\n((?:[^\[#\n].*\n|\n)*)", re.MULTILINE)
_SECTIONS: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in _SECTION.findall(Path(__file__).with_name("english.txt").read_text(encoding="utf-8"))
}

DETERMINERS = _SECTIONS["determiners"]
"""What a noun follows: articles, possessives, quantifiers, and numbers in words."""

PREPOSITIONS = _SECTIONS["prepositions"]

SUBJECTS = _SECTIONS["subjects"]
"""Pronouns that a verb follows."""

MODALS = _SECTIONS["modals"]
"""What a verb in its base form follows."""

AUXILIARIES = _SECTIONS["auxiliaries"]

FUNCTION_WORDS = _SECTIONS["function words"]
"""Pronouns, conjunctions, adverbs without an ending, greetings and fillers: no part of any concept."""

VERBS = _SECTIONS["verbs"]
"""In their base form, and no nouns."""

NOUNS_OR_VERBS = _SECTIONS["nouns or verbs"]
"""In their base form; nouns only where a noun must stand."""

VERB_FORMS = _SECTIONS["verb forms"]
"""Irregular forms that are no nouns, and forms in -s that are hardly ever any."""

ADJECTIVES = _SECTIONS["adjectives"]
"""They say how a thing is, not what it is: they do not become part of a phrase, and a noun follows them."""

EMPTY = _SECTIONS["empty nouns"]
"""They say nothing: no phrase ends with one."""

GENERIC = EMPTY | _SECTIONS["generic nouns"]
"""Nouns, and what is taken for one, that say nothing by themselves; in a longer phrase they may stay."""

NOUNS_IN_ING = _SECTIONS["nouns in ing"]
"""Nouns of their own; all others in -ing are nouns only where no verb can stand."""

NOUNS_IN_ED = _SECTIONS["nouns in ed"]
NOUNS_IN_LY = _SECTIONS["nouns in ly"]

NOUNS_LIKE_ADJECTIVES = _SECTIONS["nouns like adjectives"]
"""Nouns in -al, -ic, -ive, -able, -ful, -less, -ous and -ish."""

SENTENCE_OPENERS = _SECTIONS["sentence openers"]
"""They open a sentence in capitals and are no names."""

PLACE_OPENERS = _SECTIONS["place openers"]
"""They open a name even at the start of a sentence, if another capital follows."""

IRREGULAR_PLURALS: Mapping[str, str] = {
    plural: one for plural, _, one in (pair.partition(":") for pair in _SECTIONS["irregular plurals"])
}
NO_PLURALS = _SECTIONS["no plurals"]
"""Words in -s that are no plurals, or are said in the plural only."""

FOREIGN = _SECTIONS["foreign small words"]
"""Small words of other languages in Latin letters that are no English words."""
