"""Determine the kind of a name or a phrase: person, animal, place, organisation, product, event or work.

The rules are tried in order: what the text says that it is ("X is our tortoise", "the airline X"), titles and known
names, heads ("St Brigid's School"), relations next to it ("my boss Priya"), given names, then prepositions ("she works
at Medistar").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.gazetteer import (
    ANIMALS,
    CLASSES,
    COMMON_WORDS,
    ENGLISH_HEADS,
    FIRST_TRADES,
    GIVEN_NAMES,
    HEADS,
    KNOWN,
    MAKERS,
    NAMES_AND_WORDS,
    PEOPLE_OR_FIRMS,
    PHRASE_HEADS,
    RELATIVES,
    ROLES,
    TITLES,
    TRADES,
    known_kind,
)


class Surroundings(NamedTuple):
    """The folded words of a sentence before and after a name, nearest first; an empty text for a mark."""

    before: Sequence[str]
    after: Sequence[str]


POSSESSIVES = frozenset(
    "my our your his her their the mein meine meinen meinem meiner unser unsere unseren unserem unserer "
    "sein seine ihr ihre der die das mi mis nuestro nuestra su sus el la mijn mn m'n onze ons zijn zn "
    "z'n haar de het".split()
)
_OWNERS = POSSESSIVES - {"the", "der", "die", "das", "el", "la", "de", "het"}
_ARTICLES = frozenset("a an the ein eine un una een".split()) | POSSESSIVES
_COPULAS = frozenset("is was are am ist war es era fue".split())
_CONJUNCTIONS = frozenset("and but so or und aber oder y pero maar en dus".split())
_CALLED = frozenset("called named namens llamado llamada llama genaamd heisst heet name".split())
_OTHER_WORDS = PEOPLE_OR_FIRMS | {"nicht", "prima"}
"""Roles that say nothing of a name next to them: "nicht" is a niece in Dutch only, "prima" a cousin in Spanish only."""
UNSPECIFIED_PEOPLE = frozenset(
    "guy man woman lady girl boy bloke chap fellow kid someone somebody person dude fella lad lass lassie".split()
)
"""Nouns that tell no more of a person than that it is one."""
_ACTS = frozenset(
    "did says said told asks asked wants wanted thinks thought reckons reckoned lives lived works worked called texted "
    "phoned emailed wrote writes loves loved likes liked hates knows knew moved came comes went goes got gets bought "
    "brought brings cooks cooked met meets promised suggested recommended mentioned agreed offered invited "
    "helps helped teaches taught plays played turned turns started quit retired married died grew studies "
    "studied visited visits stays stayed sagt sagte meint meinte wohnt arbeitet "
    "will mag dice dijo quiere vive trabaja tiene viene fue zegt zei wil woont werkt heeft "
    "komt houdt kwam".split()
)
GREETED = frozenset(
    "hi hey hello thanks dear ask asked tell told meet met invite invited remind email text phone".split()
)
WORK = frozenset(
    "work works worked working job jobs joined join joining joins started starting hired interview "
    "interviewed offer employed freelance shift contract arbeite arbeitet arbeiten trabajo trabaja trabajar "
    "werk werkt werken".split()
)
PLACE_PREPOSITIONS = frozenset(
    "in to near around across outside through nach aus in naar uit en desde hacia te bij".split()
)
_AFTER_CLASSES = frozenset(
    ("", *"for from in at of on by near since who that which with w and und y en von de van aus bei".split())
)
"""Words after the noun that says what a name stands for: "Kestrel, an airline from Oslo"."""
NO_SUBJECT_AFTER = frozenset("at from with by for of in bei von im am beim vom zum zur mit auf en van".split())
"""Prepositions after which a name is no subject: "Anne at Kimura is an intern"."""
POSSESSED = frozenset(
    "a an my our his her their ein eine einen mein meinen meine un una mi mijn mn m'n een ons onze".split()
)
ENDS_OF_PHRASES = frozenset(
    ("", *"and or but with for from in on at to that which is was has und y en mit con".split())
)
_MONTHS = frozenset("january february march april may june july august september october november december jan".split())
OWNED_BY_ORGANISATIONS = frozenset(
    "staff admins employees hr it procurement customers clients website support helpdesk terms contract invoice "
    "invoices headquarters ceo cto management shareholders warehouse pricing sales marketing policy api sso engineers "
    "newsletter branch branches offices shares".split()
)
"""Nouns after the possessive of an organisation rather than of a person: Kimura's admins."""
_AND = frozenset("and und y en".split())
ALSO = _AND | frozenset(("or", "oder", "o", "of", ""))
"""Words between two names of a list."""
LISTED_KINDS = (ConceptKind.ORGANISATION, ConceptKind.PRODUCT, ConceptKind.PLACE)
"""Kinds of which all names of a list are if one is: "Oslo, Bodin and Narvik"."""
SAYS = frozenset(
    "said says told asks asked wants wanted offers offered agreed promised phoned invited thinks reckons accepted "
    "replied wrote sagt sagte meint dice dijo quiere zegt zei wil vindt vraagt".split()
)
"""Verbs whose subject is a person or an organisation."""
_NO_PERSON = frozenset("of and for the".split())
"""Words that no person's name contains."""
_ORIGINS = ("ian", "ean", "ese", "ish", "german", "rican", "french", "dutch")
"""Endings of adjectives of origin."""
_WHERE = frozenset("in near at for with by from bei bij en".split())
_ON_A_PLATFORM = frozenset("on off via".split())
_DESCRIPTIONS = frozenset(
    "new old second-hand secondhand hand used refurbished broken cheap neue neuen neuer alte alten alter gebrauchte "
    "gebrauchten nuevo nueva viejo vieja nieuwe oude tweedehands".split()
)
"""Adjectives before a thing rather than before the company that made it: a used Volvo."""
CAMEL = re.compile("(?!Mc|Mac|De|La|Le|Van|Fitz)(?!.*(?:Error|Exception)$)[A-Z][a-z]+[A-Z][A-Za-z0-9]+")
"""A capital inside of a name, which brands have rather than people: GeoGebra, TinyMCE."""
_IN = frozenset(("in", "near", "en", "nahe", "bei"))
_HOMES = frozenset(
    "flat house apartment cottage home lease villa cabin office branch depot warehouse land plot".split()
)
_LOCATED = (ConceptKind.ORGANISATION, ConceptKind.PLACE, ConceptKind.EVENT)
_WINDOW = 6


def kind_of_name(words: Sequence[str], around: Surroundings) -> ConceptKind | None:
    """Return the kind of a name by its words and by relations next to it; None if they do not tell.

    :param words: Its words, folded.
    """
    return (
        defined_kind(around)
        or _by_complement(words, around)
        or _by_itself(words, around)
        or _by_relation(around)
        or _by_place(around)
        or _by_given_name(words, around)
        or (ConceptKind.ORGANISATION if _is_supplier(around.before) else None)
    )


def _is_supplier(before: Sequence[str]) -> bool:
    """Return True after a noun for a person or a firm: "my supplier Zorblax", "our publisher, Zorblax"."""
    is_apart = before[:1] == [""] or (bool(before[:1]) and before[0] in _COPULAS)
    noun = [*before[is_apart:], ""][0]
    return noun in PEOPLE_OR_FIRMS


def defined_kind(around: Surroundings) -> ConceptKind | None:
    """Return the kind that the text itself gives a name, by a noun before it, a copula or an apposition."""
    before, after = around
    is_class = before[:1] and before[0] in CLASSES and before[0] not in PEOPLE_OR_FIRMS
    # "At my gym Anna said" says nothing of Anna.
    is_where = len(before) > 2 and before[1] in _OWNERS and before[2] in _WHERE
    if is_class and not is_where and not _ARTICLES.isdisjoint(before[1:3]):
        return CLASSES[before[0]]
    if before[:1] and before[0] in _CALLED and len(before) > 1:
        # "My cat is called Pixel."
        noun = before[2] if before[1] in _COPULAS and len(before) > 2 else before[1]
        return ConceptKind.PERSON if noun in UNSPECIFIED_PEOPLE else _person_or_animal(noun)
    if len(after) < 3 or after[1] not in _ARTICLES:
        return None
    if after[0] != "" and (after[0] not in _COPULAS or NO_SUBJECT_AFTER.intersection(before[:1])):
        return None
    for noun, ahead in pairwise([*after[2:_WINDOW], ""]):
        if noun in _AFTER_CLASSES:
            # "Kofi is a volunteer at the library."
            return None
        found = CLASSES.get(noun)
        if found is not None and ahead in _AFTER_CLASSES:
            # "In Berlin, our dog" says nothing of Berlin.
            is_other = before[:1] and before[0] in PLACE_PREPOSITIONS
            return None if is_other and found in (ConceptKind.PERSON, ConceptKind.ANIMAL) else found
    return None


def _by_itself(words: Sequence[str], around: Surroundings) -> ConceptKind | None:
    joined = " ".join(words)
    if len(words) > 1 and words[0] in TITLES and _NO_PERSON.isdisjoint(words):
        return ConceptKind.PERSON
    if "&" in words[1:-1] and not GIVEN_NAMES.issuperset({words[0], words[-1]}):
        # Harkness & Webb, but not Anna & Rui
        return ConceptKind.ORGANISATION
    known = known_kind(joined)
    if known is not None and not _is_person_here(words, around):
        is_made = known is ConceptKind.ORGANISATION and len(words) == 1 and _stands_for_a_product(joined, around)
        return ConceptKind.PRODUCT if is_made else known
    if len(words) > 1 and words[-1].isdigit():
        if words[0] in COMMON_WORDS and words[0] not in KNOWN:
            return HEADS.get(words[0], ConceptKind.PHRASE)
        return ConceptKind.PRODUCT
    if len(words) > 1 and words[0] in KNOWN and KNOWN[words[0]] is ConceptKind.PRODUCT:
        return ConceptKind.PRODUCT
    head = head_kind(words)
    if head is not None:
        return head
    if len(words) > 1 and KNOWN.get(words[0]) is ConceptKind.ORGANISATION:
        # A maker with its model, but not with a place: Ford Transit, Siemens Munich.
        return ConceptKind.ORGANISATION if KNOWN.get(words[-1]) is ConceptKind.PLACE else ConceptKind.PRODUCT
    if len(words) > 1 and any(map(str.isdigit, words[-1])):
        # The Sony WH-1000XM5.
        return ConceptKind.PRODUCT
    return None


def _stands_for_a_product(name: str, around: Surroundings) -> bool:
    """Return True if a company stands for what it made or runs: "I sold my Volvo", "the old Dyson", "on Ebay"."""
    before, after = around
    if not before:
        return False
    is_one = not after or after[0] in ENDS_OF_PHRASES
    if before[0] in _ON_A_PLATFORM:
        return is_one or after[0] not in OWNED_BY_ORGANISATIONS
    if before[0] in POSSESSED and is_one:
        return True
    is_described = before[0] in _DESCRIPTIONS and not _ARTICLES.isdisjoint(before[1:3])
    return name in MAKERS and (before[0] in _ARTICLES or is_described)


def head_kind(words: Sequence[str]) -> ConceptKind | None:
    """Return the kind of a name or a compound by its head, which is its last word, or its first one."""
    if len(words) > 1:
        if words[-1] in HEADS:
            return HEADS[words[-1]]
        if words[-1].endswith(TRADES):
            return ConceptKind.ORGANISATION
        if words[-1] in PHRASE_HEADS:
            return PHRASE_HEADS[words[-1]]
        if words[0] in FIRST_TRADES and words[0] not in COMMON_WORDS:
            return ConceptKind.ORGANISATION
        return HEADS.get(words[0]) if words[0] not in GIVEN_NAMES else None
    return None


def _is_person_here(words: Sequence[str], around: Surroundings) -> bool:
    """Return True if a name that is also a place is used for a person."""
    if words[0] not in GIVEN_NAMES:
        return False
    before, after = around
    return _by_relation(around) is not None or not _ACTS.isdisjoint(after[:1]) or not GREETED.isdisjoint(before[:1])


def _by_relation(around: Surroundings) -> ConceptKind | None:
    before, after = around
    if before[:1]:
        found = _person_or_animal(before[0])
        if found is None and before[0] in _CALLED:
            found = next(filter(None, map(CLASSES.get, before[1:4])), None)
        if found is not None:
            return found
    if found := _by_apposition(before):
        return found
    is_subject = NO_SUBJECT_AFTER.isdisjoint(before[:1])
    is_copula = bool(after) and after[0] in _COPULAS and is_subject
    if len(after) > 1 and (is_copula or after[0] == ""):
        for place, word in enumerate(after[1:_WINDOW], 2):
            if word == "" or word in _CONJUNCTIONS or word in NO_SUBJECT_AFTER or word in PLACE_PREPOSITIONS:
                # "We train for Zorblax this year, with my friends."
                break
            if found := _person_or_animal(word):
                # "I'm Dana, my cat is called Pixel" says nothing of Dana.
                return None if after[0] == "" and not _AFTER_CLASSES.issuperset(after[place : place + 1]) else found
    return None


def _by_complement(words: Sequence[str], around: Surroundings) -> ConceptKind | None:
    """Return the kind of what someone has: "my boss is Deepak Raman", but not of an origin: "my boss is Norwegian"."""
    before = around.before
    if len(before) < 3 or before[0] not in _COPULAS or before[2] not in POSSESSIVES or before[1] in PEOPLE_OR_FIRMS:
        return None
    is_firm = words[0] not in GIVEN_NAMES and head_kind(words) is ConceptKind.ORGANISATION
    return None if is_firm or words[-1].endswith(_ORIGINS) else CLASSES.get(before[1])


def _by_place(around: Surroundings) -> ConceptKind | None:
    """Return the kind of a name in which a person or a business is: "the garage in Ludlow", "my aunt in Sopot"."""
    if len(around.before) < 2 or around.before[0] not in _IN:
        return None
    noun = around.before[1]
    is_head = HEADS.get(noun) in _LOCATED and noun not in ENGLISH_HEADS
    is_there = is_head or noun in _HOMES or noun in RELATIVES or noun in ROLES or PHRASE_HEADS.get(noun) in _LOCATED
    return ConceptKind.PLACE if is_there else None


def _by_apposition(before: Sequence[str]) -> ConceptKind | None:
    """Return the kind of a name in apposition to what someone has: "our group, Kestrel", "the conductor, Rui"."""
    class_and_owner = [word for word in before if word][:2]
    if before[:1] != [""] or len(class_and_owner) < 2 or class_and_owner[1] not in POSSESSIVES:
        return None
    described, owner = class_and_owner
    if described in PEOPLE_OR_FIRMS:
        return None
    return CLASSES.get(described) if owner in _OWNERS else _person_or_animal(described)


def _person_or_animal(word: str) -> ConceptKind | None:
    if word in ANIMALS:
        return ConceptKind.ANIMAL
    if word not in _OTHER_WORDS and (word in RELATIVES or word in ROLES):
        return ConceptKind.PERSON
    return None


def _by_given_name(words: Sequence[str], around: Surroundings) -> ConceptKind | None:
    if len(words) == 1 and words[0] in _MONTHS:
        return None
    if _NO_PERSON.isdisjoint(words) and (words[0] in GIVEN_NAMES or words[0] in NAMES_AND_WORDS):
        return ConceptKind.PERSON
    is_common = bool(around.before[:1]) and (around.before[0] in _ARTICLES or around.before[0] in NO_SUBJECT_AFTER)
    if around.after[:1] and around.after[0] in _ACTS and len(words) < 3 and not is_common:
        return ConceptKind.PERSON
    return None
