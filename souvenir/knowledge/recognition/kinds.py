"""Determine the kind of a name or a phrase: person, animal, place, organisation, product, event or work.

The rules are tried in order: what the text says that it is ("X is our tortoise", "the airline X"), titles and known
names, heads ("St Brigid's School"), relations next to it ("my boss Priya"), given names, then prepositions ("she works
at Medistar").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.gazetteer import (
    ANIMALS,
    CLASSES,
    COMMON_WORDS,
    GIVEN_NAMES,
    HEADS,
    KNOWN,
    NAMES_AND_WORDS,
    PHRASE_HEADS,
    RELATIVES,
    ROLES,
    TITLES,
    TRADES,
    WORK_WORDS,
    known_kind,
)
from souvenir.knowledge.recognition.spelling import singular


class Surroundings(NamedTuple):
    """The folded words of a sentence before and after a name, nearest first; an empty text for a mark."""

    before: Sequence[str]
    after: Sequence[str]


POSSESSIVES = frozenset(
    "my our your his her their the mein meine meinen meinem meiner unser unsere unseren unserem unserer sein "
    "seine ihr ihre der die das mi mis nuestro nuestra su sus el la mijn onze ons zijn haar de het".split()
)
_OWNERS = POSSESSIVES - {"the", "der", "die", "das", "el", "la", "de", "het"}
_ARTICLES = frozenset("a an the ein eine un una een".split()) | POSSESSIVES
_COPULAS = frozenset("is was are am ist war es era fue".split())
_CALLED = frozenset("called named namens llamado llamada llama genaamd heisst heet".split())
_PRONOUN_COPULAS = frozenset("hes he's shes she's its it's thats that's he’s she’s it’s that’s".split())
"""Copulas whose pronoun stands for the name before the comma: "Sprocket, hes a lurcher"."""
_PEOPLE_OR_FIRMS = ROLES & PHRASE_HEADS.keys()
"""Nouns that stand for a person as often as for an organisation: "my supplier Dave", "my supplier Halden Parts"."""
_OTHER_WORDS = _PEOPLE_OR_FIRMS | {"nicht", "prima"}
"""Roles that say nothing of a name next to them: "nicht" is a niece in Dutch only, "prima" a cousin in Spanish only."""
_ANYONE = frozenset("guy man woman lady girl boy bloke chap fellow kid someone somebody person".split())
_BREEDS = ("hund", "hound", "terrier", "mischling", "spaniel", "doodle", "dackel", "pudel", "katze", "kater", "hond")
"""Ends of words for dogs and cats: elkhound, Dackelmischling."""
_ACTS = frozenset(
    "says said told asks asked wants wanted thinks thought lives lived works worked called texted phoned "
    "emailed wrote writes loves loved likes liked hates knows knew moved came comes went goes got gets bought "
    "brought brings cooks cooked met meets promised suggested recommended mentioned agreed offered invited "
    "helps helped teaches taught plays played turned turns started quit retired married died grew studies "
    "studied visited visits stays stayed sagt sagte meint meinte wohnt arbeitet "
    "will mag dice dijo quiere vive trabaja tiene viene fue zegt zei wil woont werkt heeft "
    "komt houdt kwam".split()
)
_GREETED = frozenset(
    "hi hey hello thanks dear ask asked tell told meet met invite invited remind email text phone".split()
)
_WORK = frozenset(
    "work works worked working job jobs joined join joining joins started starting hired interview "
    "interviewed offer employed freelance shift contract arbeite arbeitet arbeiten trabajo trabaja trabajar "
    "werk werkt werken".split()
)
_AFFILIATED = _WORK | frozenset(
    "role roles position positions career internship apply applied applying application insured insurance policy "
    "account bank banking mortgage ordered order booked contract invoice invoiced subscribed subscription flew client "
    "clients study studied studying degree enrolled volunteer volunteered volunteering intern interned member members "
    "membership donate donated refund delivery pitch".split()
)
_AT = frozenset("at for with by from bei en bij in como".split())
_OF_AN_ORGANISATION = frozenset("at for with by from to of bei bij".split())
_JOINED = frozenset("joined joining joins join left leaving".split())
_USE = frozenset(
    "using use uses used install installed installing run runs running via migrate migrated migrating switch "
    "switched switching upgrade upgraded deploy deployed app bought nutze nutzen nutzt uso usa gebruik "
    "gebruikt built stored hosted saved tracked imported exported backed edited configure configured subscribe "
    "download downloaded uninstall uninstalled ".split()
)
_USED_WITH = frozenset("to from with on in via the a an my our auf mit zu von nach op met naar van into by up".split())
_SUCH_AS = frozenset(("like", "as", "including"))
"""Words between a class and its examples: a library like Helmet, companies such as Kestrel."""
_WARES = frozenset(
    "app apps software laptop phone smartphone tablet watch wristwatch smartwatch camera lens headphones earbuds "
    "speaker speakers printer router charger keyboard monitor console account subscription plugin extension library "
    "framework template templates dashboard database cluster api sdk server spreadsheet playlist tv bike bicycle "
    "scooter pram stroller oven fridge dishwasher blender mixer drill mower vacuum guitar amp keyboard tent backpack "
    "boots trainers sneakers jacket tablets capsules inhaler cream".split()
)
"""Nouns that follow the name of a brand or a product: "the Strava app", "an Omega wristwatch"."""
_PLACE_PREPOSITIONS = frozenset(
    "in to near around across outside through nach aus in naar uit en desde hacia te bij".split()
)
_MOVES = frozenset(
    "live lives lived living move moves moved moving based born grew stay stayed staying fly flew flying flight travel "
    "travelled traveled trip drive drove train go goes going went visit wohne wohnt wohnen ziehe zieht gezogen fahre "
    "vivo vive vivimos vivir mudamos voy vamos viaje woon woont wonen verhuisd reis".split()
)
_AFTER_CLASSES = frozenset(
    ("", *"for from in at of on since who that which with w and und y en von de van aus bei".split())
)
"""Words after the noun that says what a name stands for: "Kestrel, an airline from Oslo"."""
_NO_SUBJECT_AFTER = frozenset("at from with by for of bei von en van".split())
"""Prepositions after which a name is no subject: "Anne at Kimura is an intern"."""
_MAKERS_ONE = frozenset(
    "a an my our his her their ein eine einen mein meinen meine un una mi mijn een ons onze".split()
)
_ENDS_OF_PHRASES = frozenset(
    ("", *"and or but with for from in on at to that which is was has und y en mit con".split())
)
_PLURAL_VERBS = frozenset("want expect pay accept require sell charge insist offer refuse supply deliver".split())
_BEFORE_BASE_FORMS = frozenset("does did do will would can could should may might must let to and und y en or".split())
_INDEFINITE = frozenset(("a", "an"))
_MONTHS = frozenset("january february march april may june july august september october november december jan".split())
_NO_DESCRIPTIONS = frozenset(("", *"of for with from by to in on at like as and or than called named".split()))
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
    "said says told asks asked wants wanted offers offered agreed promised phoned invited thinks accepted replied "
    "wrote sagt sagte meint will dice dijo quiere zegt zei wil vindt vraagt".split()
)
"""Verbs whose subject is a person or an organisation."""
_MAKES = frozenset(
    "charges sells supplies ships announced launched acquired released hired refunded invoiced sponsors employs "
    "publishes manufactures delivers rejected approved offered declined cancelled accepts".split()
)
"""Verbs of which an organisation is the subject more often than a person."""
_NO_PERSON = frozenset("of and for the".split())
"""Words that no person's name contains."""
_ORIGINS = ("ian", "ean", "ese", "ish", "german", "rican", "french", "dutch")
"""Endings of adjectives of origin."""
HONORIFICS = ("-san", "-kun", "-chan", "-sensei", "-ji", "-bhai", "-ssi", "-nim")
"""Ends of names of people in Japanese, Hindi and Korean use: Tanaka-san."""
_AT_WORK = frozenset(("at", "bei", "bij"))
_FLIES = frozenset("flew fly flying flights flight".split())
_IN = frozenset(("in", "near", "en", "nahe", "bei"))
_LOCATED = (ConceptKind.ORGANISATION, ConceptKind.PLACE, ConceptKind.EVENT)
_WINDOW = 6


def kind_of_name(words: Sequence[str], around: Surroundings) -> ConceptKind | None:
    """Return the kind of a name by its words and by relations next to it; None if they do not tell.

    :param words: Its words, folded.
    """
    return (
        defined_kind(around)
        or _by_itself(words, around)
        or _by_relation(around)
        or _by_complement(words, around)
        or _by_place(around)
        or _by_given_name(words, around)
        or (ConceptKind.ORGANISATION if not _PEOPLE_OR_FIRMS.isdisjoint(around.before[:1]) else None)
    )


def defined_kind(around: Surroundings) -> ConceptKind | None:
    """Return the kind that the text itself gives a name, by a noun before it, a copula or an apposition."""
    before, after = around
    is_class = before[:1] and before[0] in CLASSES and before[0] not in _PEOPLE_OR_FIRMS
    # "At my gym Anna said" says nothing of Anna.
    is_where = len(before) > 2 and before[1] in _OWNERS and before[2] in _AT | _IN
    if is_class and not is_where and not _ARTICLES.isdisjoint(before[1:3]):
        return CLASSES[before[0]]
    if before[:1] and before[0] in _CALLED and not _ANYONE.isdisjoint(before[1:2]):
        return ConceptKind.PERSON
    is_apposition = bool(after) and after[0] == ""
    if is_apposition and len(after) > 1 and after[1] in _PRONOUN_COPULAS:
        is_apposition, after = False, after[1:]
    elif not is_apposition and (not after or after[0] not in _COPULAS or _NO_SUBJECT_AFTER.intersection(before[:1])):
        return None
    if len(after) < 3 or after[1] not in _ARTICLES:
        return None
    for place in range(2, min(len(after), _WINDOW)):
        if after[place] in _AFTER_CLASSES:
            return None
        ahead = after[place + 1] if place + 1 < len(after) else ""
        found = _class_of(after[place])
        if found is not None and ahead in _AFTER_CLASSES:
            # "In Berlin, my sister and I" and "in Berlin, our dog" say nothing of Berlin.
            is_other = is_apposition and (ahead in _AND or (before[:1] and before[0] in _PLACE_PREPOSITIONS))
            return None if is_other and found in (ConceptKind.PERSON, ConceptKind.ANIMAL) else found
    return None


def _class_of(noun: str) -> ConceptKind | None:
    return CLASSES.get(noun) or (ConceptKind.ANIMAL if noun.endswith(_BREEDS) else None)


def _by_itself(words: Sequence[str], around: Surroundings) -> ConceptKind | None:
    joined = " ".join(words)
    if words[-1].endswith(HONORIFICS) or (len(words) > 1 and words[0] in TITLES and _NO_PERSON.isdisjoint(words)):
        return ConceptKind.PERSON
    if len(words) > 1 and words[0][1:2] == "." and words[-1] not in HEADS:
        # P.K. Nair
        return ConceptKind.PERSON
    if "&" in words[1:-1] and not GIVEN_NAMES.issuperset({words[0], words[-1]}):
        # Harkness & Webb, but not Anna & Rui
        return ConceptKind.ORGANISATION
    known = known_kind(joined)
    if known is not None and not _is_person_here(words, around):
        is_made = known is ConceptKind.ORGANISATION and len(words) == 1 and _is_one_of_many(around)
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
    if len(words) > 1 and KNOWN.get(words[0]) is ConceptKind.ORGANISATION and words[0] not in GIVEN_NAMES:
        # A maker with its model, but not with a place: Ford Transit, Siemens Munich.
        return ConceptKind.ORGANISATION if KNOWN.get(words[-1]) is ConceptKind.PLACE else ConceptKind.PRODUCT
    stem, _, tail = words[-1].rpartition("-")
    if (stem and HEADS.get(tail) is ConceptKind.PRODUCT) or (len(words) > 1 and _is_model_number(words[-1])):
        return ConceptKind.PRODUCT
    if around.before[:1] and around.before[0] in WORK_WORDS and len(words) > 1:
        return ConceptKind.WORK
    return None


def _is_model_number(word: str) -> bool:
    """Return True for a word with both a letter and a digit: the Sony WH-1000XM5."""
    return word[:1].isalnum() and any(map(str.isdigit, word)) and not word.isdigit()


def _is_one_of_many(around: Surroundings) -> bool:
    """Return True if the name of a maker stands for a thing that it made: "I sold my Volvo"."""
    before, after = around
    return bool(before[:1]) and before[0] in _MAKERS_ONE and (not after or after[0] in _ENDS_OF_PHRASES)


def head_kind(words: Sequence[str]) -> ConceptKind | None:
    """Return the kind of a name or a compound by its head, which is its last word, or its first one."""
    if len(words) > 1:
        if words[-1] in HEADS:
            return HEADS[words[-1]]
        if words[-1].endswith(TRADES):
            return ConceptKind.ORGANISATION
        if words[-1] in PHRASE_HEADS:
            return PHRASE_HEADS[words[-1]]
        return HEADS.get(words[0]) if words[0] not in GIVEN_NAMES else None
    return None


def _is_person_here(words: Sequence[str], around: Surroundings) -> bool:
    """Return True if a name that is also a place is used for a person."""
    if words[0] not in GIVEN_NAMES and words[0] not in NAMES_AND_WORDS:
        return False
    before, after = around
    return (
        _by_relation(around) is not None
        or (after[:1] and after[0] in _ACTS)
        or bool(before[:1] and before[0] in _GREETED)
    )


def _by_relation(around: Surroundings) -> ConceptKind | None:
    before, after = around
    if before[:1]:
        found = _person_or_animal(before[0])
        if found is None and before[0] in _CALLED:
            found = next((CLASSES[word] for word in before[1:4] if word in CLASSES), None)
        if found is not None:
            return found
    if found := _by_apposition(before):
        return found
    if len(after) > 1 and (after[0] in _COPULAS or (after[0] == "" and (after[1] in _ARTICLES or len(after) > 2))):
        for word in after[1:_WINDOW]:
            if word == "":
                break
            if found := _person_or_animal(word):
                return found
        if after[0] == "":
            return None
        for word in after[1:_WINDOW]:
            if HEADS.get(word) in (ConceptKind.ORGANISATION, ConceptKind.PLACE):
                return HEADS[word]
    return None


def _by_complement(words: Sequence[str], around: Surroundings) -> ConceptKind | None:
    """Return the kind of a name that a relation is: "my boss is Deepak Raman"; not of an origin, which it has."""
    before = around.before
    if len(before) < 3 or before[0] not in _COPULAS or before[2] not in POSSESSIVES or words[-1].endswith(_ORIGINS):
        return None
    return _person_or_animal(before[1])


def _by_place(around: Surroundings) -> ConceptKind | None:
    """Return the kind of a name in which a person or a business is: "the garage in Ludlow", "my aunt in Sopot"."""
    if len(around.before) < 2 or around.before[0] not in _IN:
        return None
    noun = around.before[1]
    is_there = noun in RELATIVES or noun in ROLES or HEADS.get(noun) in _LOCATED or PHRASE_HEADS.get(noun) in _LOCATED
    return ConceptKind.PLACE if is_there else None


def _by_apposition(before: Sequence[str]) -> ConceptKind | None:
    """Return the kind of a name in apposition to what someone has: "our group, Kestrel", "the conductor, Rui"."""
    class_and_owner = [word for word in before if word][:2]
    if before[:1] != [""] or len(class_and_owner) < 2 or class_and_owner[1] not in POSSESSIVES:
        return None
    described, owner = class_and_owner
    return CLASSES.get(described) if owner in _OWNERS else _person_or_animal(described)


def is_relative_or_animal(after: Sequence[str]) -> bool:
    """Return True if the words after a name say whose relative or animal it is.

    By an apposition or a copula: "Pickle, our one-eyed tabby", "Biscuit is our terrier".
    """
    if len(after) > 2 and after[1] in _INDEFINITE:
        return defined_kind(Surroundings((), after)) is ConceptKind.ANIMAL
    if len(after) < 3 or after[1] not in _OWNERS:
        return False
    if after[0] in _COPULAS:
        return defined_kind(Surroundings((), after)) in (ConceptKind.PERSON, ConceptKind.ANIMAL)
    described = next((place for place, word in enumerate(after) if place and word == ""), len(after))
    return after[0] == "" and any(_person_or_animal(word) for word in after[2:described])


def _person_or_animal(word: str) -> ConceptKind | None:
    if word in ANIMALS:
        return ConceptKind.ANIMAL
    if word not in _OTHER_WORDS and (word in RELATIVES or word in ROLES):
        return ConceptKind.PERSON
    return None


def _by_given_name(words: Sequence[str], around: Surroundings) -> ConceptKind | None:
    if around.before[:1] and around.before[0] in _AT_WORK and not _WORK.isdisjoint(around.before[1:3]):
        return ConceptKind.ORGANISATION
    if len(words) == 1 and words[0] in _MONTHS and (not around.after or around.after[0] not in _ACTS):
        return None
    if _NO_PERSON.isdisjoint(words) and (words[0] in GIVEN_NAMES or (words[0] in NAMES_AND_WORDS and len(words) < 4)):
        return ConceptKind.PERSON
    is_common = bool(around.before[:1]) and around.before[0] in _ARTICLES
    if around.after[:1] and around.after[0] in _ACTS and len(words) < 3 and not is_common:
        return ConceptKind.PERSON
    return None


def kind_by_preposition(around: Surroundings) -> ConceptKind | None:
    """Return the kind of a name by the preposition or the greeting before it, which is weak evidence."""
    before, after = around
    nearest = before[0] if before else ""
    if after[:1] and after[0] in _MAKES:
        return ConceptKind.ORGANISATION
    if nearest == "to" and len(before) > 2 and before[2] == "from" and KNOWN.get(before[1]) in LISTED_KINDS:
        # From Mailchimp to Zorblax.
        return KNOWN[before[1]]
    if nearest == "to" and not _FLIES.isdisjoint(before[1:4]):
        return ConceptKind.PLACE
    if nearest in _JOINED or (
        (nearest in _AT and not _WORK.isdisjoint(before[1:4]))
        or (nearest in _OF_AN_ORGANISATION and not _AFFILIATED.isdisjoint(before[1:4]))
    ):
        return ConceptKind.ORGANISATION
    if nearest in _USE or (nearest in _USED_WITH and not _USE.isdisjoint(before[1:3])):
        return ConceptKind.PRODUCT
    if nearest in _PLACE_PREPOSITIONS and not _MOVES.isdisjoint(before[1:4]):
        return ConceptKind.PLACE
    if nearest == "at":
        return ConceptKind.ORGANISATION
    if nearest in _GREETED:
        return ConceptKind.PERSON
    return None


def kind_by_list(around: Surroundings) -> ConceptKind | None:
    """Return the kind of a name by the words around it that a name of a person rarely has.

    These are the ware after it, its class ("a library like Helmet"), the well-known name that a list has before it, a
    verb in the plural ("Hafner expect"), and an indefinite article ("bought a second-hand Trek").
    """
    before, after = around
    if after[:1] and after[0] in _WARES:
        return ConceptKind.PRODUCT
    if before[:1] and before[0] in _SUCH_AS:
        named = [CLASSES[one] for one in map(singular, before[1:3]) if one in CLASSES]
        return named[0] if named else None
    listed = KNOWN.get(before[1]) if len(before) > 1 and before[0] in ALSO else None
    if listed in (ConceptKind.ORGANISATION, ConceptKind.PRODUCT):
        return listed
    if after[:1] and after[0] in _PLURAL_VERBS and _BEFORE_BASE_FORMS.isdisjoint(before[:1]):
        return ConceptKind.ORGANISATION
    is_one = not _INDEFINITE.isdisjoint(before[:2]) and (before[0] in _INDEFINITE or before[0] not in _NO_DESCRIPTIONS)
    is_one = is_one or (bool(before[:1]) and before[0] in _MAKERS_ONE)
    return ConceptKind.PRODUCT if is_one and (not after or after[0] in _ENDS_OF_PHRASES) else None
