"""Lists of names and of words that tell the kind of a concept, from kinds.txt and names_and_places.txt.

All entries are folded: lower case, without accents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.word_lists import kinds_of, read_sections

_FOLDER = Path(__file__).parent


def _entries(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in words)


_NAMES = read_sections(_FOLDER / "names_and_places.txt")
_KINDS = read_sections(_FOLDER / "kinds.txt")

GIVEN_NAMES = _NAMES["given names"]
"""Given names that are no common words."""

NAMES_AND_WORDS = _NAMES["given names that are words"]
"""Given names that are also words: Will, Mark, Grace."""

COMMON_WORDS = _NAMES["common words"]
"""English words in frequent use; a capital at the start of a sentence makes none of them a name."""

TITLES = _KINDS["titles"]
RELATIVES = _KINDS["relatives"]
ROLES = _KINDS["roles"]
PEOPLE_OR_FIRMS = _KINDS["people or firms"]
"""Nouns that stand for a person as often as for an organisation: "my supplier Dave", "my supplier Halden Parts"."""

ANIMALS = _KINDS["animals"]
AFFILIATIONS = _KINDS["affiliations"]
"""Words before the name of an organisation: "ordered from Norrbo", "Praktikum bei Fressko"."""

AFFILIATIONS_AFTER = _KINDS["affiliations after a name"]
"""The same where the verb follows: "bei Fressko bestellt"."""

USES = _KINDS["uses"]
"""Words before the name of a product: "switched to Tallybook"."""

USES_AFTER = _KINDS["uses after a name"]

RECORDS = _KINDS["records"]
"""Verbs of what one does in a program, rather than in a town: "tracked in Tallybook"."""

JOURNEYS = _KINDS["journeys"]
"""Words before the name of a place: "the hike to Edale"."""

WARES = _KINDS["wares"]
"""Nouns that follow the name of a brand or a product: "the Strava app", "an Omega wristwatch"."""

MAKERS = _KINDS["makers"]
"""Companies whose names stand for what they made: "the Dyson"."""

TIME_WORDS = _KINDS["months and days"]
"""Months, weekdays and units of time in other languages than English."""

SHORT_ABBREVIATIONS = _KINDS["short abbreviations"]
"""Abbreviations of two letters in frequent use; others are too ambiguous for a concept: AI, UX."""

INTERJECTIONS = _KINDS["interjections"]
"""Interjections of other languages than English, which are no names in a text of any language."""

SMALL_WORDS: Mapping[str, frozenset[str]] = {
    "de": _KINDS["german small words"],
    "es": _KINDS["spanish small words"],
    "nl": _KINDS["dutch small words"],
}
"""Words by which a language is recognised, and which begin no name in it."""

_ENGLISH_PLACES = _entries(_KINDS["english place heads"])
_ENGLISH_ORGANISATIONS = _entries(_KINDS["english organisation heads"])
ENGLISH_HEADS = _ENGLISH_PLACES | _ENGLISH_ORGANISATIONS
"""Heads of English names that are other nouns elsewhere."""

HEADS = kinds_of(
    (_ENGLISH_PLACES, ConceptKind.PLACE),
    (_ENGLISH_ORGANISATIONS, ConceptKind.ORGANISATION),
    (_entries(_KINDS["work heads"]), ConceptKind.WORK),
    (_entries(_KINDS["product heads"]), ConceptKind.PRODUCT),
    (_entries(_KINDS["place heads"]), ConceptKind.PLACE),
    (_entries(_KINDS["event heads"]), ConceptKind.EVENT),
    (_entries(_KINDS["organisation heads"]), ConceptKind.ORGANISATION),
)
"""The kind of a name that ends, or in other languages begins, with the word: Hospital, Street."""

TRADES = tuple(_KINDS["trades"])
"""Ends of German, Dutch and Spanish names of firms: Kessler Elektrotechnik."""

FIRST_TRADES = _KINDS["trades"] | _KINDS["trades of names"]
"""First words of such names: Heizung Kramer, Construcciones Bermejo."""

FIRMS = _KINDS["firms before a name"]
"""German and Dutch words before the name of a firm, without an article: bäckerei krause."""

VENUES = _entries(_KINDS["venues"])
"""Nouns for a place that are concepts only where a particular one is meant: the station."""

PHRASE_HEADS = kinds_of(
    (VENUES, ConceptKind.PLACE),
    (_entries(_KINDS["place heads of phrases"]), ConceptKind.PLACE),
    (_entries(_KINDS["event heads of phrases"]), ConceptKind.EVENT),
    (_entries(_KINDS["organisation heads of phrases"]), ConceptKind.ORGANISATION),
    (_entries(_KINDS["organisation heads of compounds"]), ConceptKind.ORGANISATION),
)
"""The kind of a phrase that ends with the word: charity race."""

COMPOUND_HEADS = _entries(_KINDS["organisation heads of compounds"])
"""The words of `PHRASE_HEADS` that stand for an organisation only in a compound: pet shop."""

UNNAMED = _entries(_KINDS["organisations without a name"])
"""Organisations of which there is only one where someone speaks of them: the police, the council."""

NO_ORGANISATIONS = _entries(_KINDS["no organisations"])
"""Compounds whose last word makes no organisation of them: age group."""

CLASSES = kinds_of(
    (_KINDS["organisation classes"], ConceptKind.ORGANISATION),
    (_KINDS["place classes"], ConceptKind.PLACE),
    (_KINDS["product classes"], ConceptKind.PRODUCT),
    (_KINDS["work classes"], ConceptKind.WORK),
    (RELATIVES | ROLES, ConceptKind.PERSON),
    (ANIMALS, ConceptKind.ANIMAL),
)
"""The kind of a name that a text says to be one of these: "the airline Kestrel", "Newton is our tortoise"."""

KNOWN = kinds_of(
    (_entries(_NAMES["places"]), ConceptKind.PLACE),
    (_entries(_KINDS["places"]), ConceptKind.PLACE),
    (_entries(_KINDS["companies"]), ConceptKind.ORGANISATION),
    (_entries(_KINDS["products"]), ConceptKind.PRODUCT),
)
"""Well-known places, organisations and products."""

_STREETS = tuple(_KINDS["street endings"])
NO_STREETS = tuple(_KINDS["no streets"])
"""German and Dutch nouns that end like the name of a street: Arbeitsplatz, snelweg."""
_MIN_STREET_CHARS = 7
"""Of the shortest names: Burgweg."""

_MEDICINES = tuple(_KINDS["medicine endings"])
_MIN_MEDICINE_CHARS = 8
_CACHED_WORDS = 16_384

_MIN_CHARS_WITHOUT_CAPITAL = 4
_MIN_CONSONANTS_WITHOUT_CAPITAL = 3
"""A shorter name of an organisation is something else without its capitals (ing, db), but not a string of consonants
(dhl)."""
_VOWELS = frozenset("aeiouy")


def known_kind(name: str) -> ConceptKind | None:
    """Return the kind of a well-known name, in the plural too, or of a medicine by its ending; None for others."""
    found = KNOWN.get(name) or KNOWN.get(name.removesuffix("s"))
    if found is None and name.endswith(_MEDICINES) and len(name) >= _MIN_MEDICINE_CHARS:
        return ConceptKind.PRODUCT
    return found


@lru_cache(_CACHED_WORDS)
def is_street(word: str) -> bool:
    """Return True for the German or Dutch name of a street, in one word: Lindenweg, but not Heimweg."""
    is_compound = word.endswith(_STREETS) and word not in _STREETS and len(word) >= _MIN_STREET_CHARS
    return is_compound and not word.endswith(NO_STREETS)


@lru_cache(_CACHED_WORDS)
def is_known_in_small_letters(word: str) -> bool:
    """Return True for a well-known organisation or product whose name is no common word."""
    if word in COMMON_WORDS:
        return False
    kind = known_kind(word)
    fewest = _MIN_CONSONANTS_WITHOUT_CAPITAL if _VOWELS.isdisjoint(word) else _MIN_CHARS_WITHOUT_CAPITAL
    return kind is ConceptKind.PRODUCT or (
        kind is ConceptKind.ORGANISATION and len(word) >= fewest and word not in GIVEN_NAMES
    )


KNOWN_COMPOUNDS = frozenset(name for name, kind in KNOWN.items() if " " in name and kind is not ConceptKind.PLACE)
"""Well-known organisations and products of several words."""


def _pairs(section: str) -> dict[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for pair in _KINDS[section]:
        short, _, long = pair.replace("_", " ").partition(":")
        found[short].add(long)
    return {short: frozenset(long) for short, long in found.items()}


LONG_NAMES: Mapping[str, frozenset[str]] = _pairs("nicknames")
"""The given names that a nickname is short for, unless it is their beginning: Bob for Robert."""

SHORT_FORMS = _KINDS["short forms"]
"""Beginnings of given names that are in use as names: Mel for Melanie."""

ABBREVIATIONS: Mapping[str, frozenset[str]] = _pairs("abbreviations")
"""Other words for the same place, product or relative: NYC, München, Mum."""

LEGAL_FORMS = _KINDS["legal forms"]
"""Legal forms of companies: Inc, GmbH."""
