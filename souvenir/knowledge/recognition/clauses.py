"""Determine the kind of a name by the clause around it: prepositions, verbs, and the nouns that they govern.

This is weaker evidence than `kinds`, so it counts for names of which nothing else tells the kind. "Ordered from Norrbo"
makes an organisation, "tracked in Norrbo" a product, "the hike to Norrbo" a place.
"""

from __future__ import annotations

from collections.abc import Sequence

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.gazetteer import (
    AFFILIATIONS,
    AFFILIATIONS_AFTER,
    CLASSES,
    COMMON_WORDS,
    JOURNEYS,
    KNOWN,
    RECORDS,
    RELATIVES,
    ROLES,
    USES,
    USES_AFTER,
    WARES,
)
from souvenir.knowledge.recognition.kinds import (
    ENDS_OF_PHRASES,
    GREETED,
    NO_SUBJECT_AFTER,
    PLACE_PREPOSITIONS,
    POSSESSED,
    WORK,
    Surroundings,
)
from souvenir.knowledge.recognition.spelling import singular
from souvenir.knowledge.recognition.vocabulary import WordClass, class_of

_AT = frozenset("at for with by from bei en bij in como".split())
_OF_AN_ORGANISATION = frozenset("at for with by from to of through bei von beim zum zur bij van naar con para".split())
_AT_A_BUSINESS = frozenset(("bei", "bij"))
"""German and Dutch prepositions between which and a name of a place an article or a verb would stand."""
_AT_WORK = _AT_A_BUSINESS | {"at"}
_AT_OF = frozenset("of von van de".split())
_USED_WITH = frozenset(
    "to from with on in via through the a an my our auf mit zu von uber nach op met naar van into by up de en".split()
)
_USED_BEFORE = frozenset("mit auf uber in met op via".split())
_ON_A_PLATFORM = frozenset(("on", "via"))
_SUCH_AS = frozenset(("like", "as", "including"))
"""Words between a class and its examples: a library like Helmet, companies such as Kestrel."""
_NEAR = frozenset("near outside around nahe".split())
_JOURNEYED = PLACE_PREPOSITIONS | {"from", "para"}
_FLIES = frozenset("flew fly flying flights flight".split())
_PLURAL_VERBS = frozenset("want expect pay accept require sell charge insist offer refuse supply deliver".split())
_INDEFINITE = frozenset(("a", "an"))
_DEFINITE = frozenset("the het de el la der die dem".split())
_OF_A_POSITION = frozenset(("for", "of"))
"""Prepositions that with an article precede a position: the interview for the Senior Producer."""
_RECORDED = frozenset("in op auf".split())
_IN_TECHNOLOGY = frozenset("with to via through using".split())
_TECHNICAL = frozenset(
    "authentication auth login logging monitoring payments deployment deployments integration integrate integrates "
    "hosting caching analytics styling backend frontend sync syncing syncs compatible conflict conflicts conflicting "
    "animations connect connected connects pairing paired".split()
)
"""Words of software before what does it: "authentication with Zorblax"."""
_MAKES = frozenset(
    "charges charged sells supplies ships announced launched acquired released hired refunded invoiced sponsors "
    "employs publishes manufactures delivers rejected approved offered declined cancelled accepts pays paid renewed "
    "complained invoices quoted billed shipped delivered sponsored published downgraded upgraded".split()
)
"""Verbs of which an organisation is the subject more often than a person."""
_OF_CUSTOMERS = frozenset(
    "staff employees customers clients contract invoice invoices headquarters shareholders shares branch branches "
    "offices delivery refund recruiter driver drivers membership voucher accelerator "
    "incubator".split()
)
"""Nouns after the name of an organisation: the Kestrel contract."""
_WINDOW, _NEXT = 4, 3
"""Numbers of words before and after the name in which a word is looked for."""


def kind_by_clause(around: Surroundings) -> ConceptKind | None:
    """Return the kind of a name by the verb of which it is the subject, or by the words before it."""
    before, after = around
    if not _MAKES.isdisjoint(after[:1]) and NO_SUBJECT_AFTER.isdisjoint(before[:1]):
        return ConceptKind.ORGANISATION
    if not before:
        return None
    return _by_preposition(before[0], around) or (ConceptKind.PERSON if before[0] in GREETED else None)


def kind_by_strong_clause(around: Surroundings) -> ConceptKind | None:
    """Return the kind that a verb gives the only noun after a preposition: "bei Fressko bestellt"."""
    before, after = around
    if not before:
        return None
    nearest, near = before[0], before[1:_WINDOW]
    if nearest in _OF_AN_ORGANISATION and _follows(AFFILIATIONS_AFTER, after):
        return ConceptKind.ORGANISATION
    if nearest in _USED_BEFORE and _follows(USES_AFTER, after):
        return ConceptKind.PRODUCT
    return ConceptKind.PLACE if nearest == "nach" and not JOURNEYS.isdisjoint(near) else None


def _follows(verbs: frozenset[str], after: Sequence[str]) -> bool:
    """Return True if one of these verbs is among the next words of the clause."""
    end = after.index("") if "" in after else len(after)
    return not verbs.isdisjoint(after[: min(end, _NEXT)])


def _by_preposition(nearest: str, around: Surroundings) -> ConceptKind | None:
    before, near = around.before, around.before[1:_WINDOW]
    if nearest == "to" and not _FLIES.isdisjoint(near):
        return ConceptKind.PLACE
    if (nearest in _AT and not WORK.isdisjoint(near)) or _is_affiliated(before):
        return ConceptKind.ORGANISATION
    if nearest in _IN_TECHNOLOGY and not _TECHNICAL.isdisjoint(near):
        return ConceptKind.PRODUCT
    if nearest in USES or (nearest in _USED_WITH and not USES.isdisjoint(before[1:3])):
        return ConceptKind.PRODUCT
    strong = kind_by_strong_clause(around)
    if strong is not None or (nearest in _RECORDED and not RECORDS.isdisjoint(near)):
        return strong or ConceptKind.PRODUCT
    if nearest in _JOURNEYED and not JOURNEYS.isdisjoint(near):
        return ConceptKind.PLACE
    is_employer = nearest in _AT_OF and before[1:2] and before[1] in ROLES
    return ConceptKind.ORGANISATION if nearest in _AT_WORK or is_employer else None


def _is_thing(noun: str) -> bool:
    """Return True for goods, which come from organisations ("tyres from Zorblax"), unlike people."""
    return noun in COMMON_WORDS and noun not in RELATIVES | ROLES and class_of(noun) is WordClass.NOUN


def _by_weak_preposition(around: Surroundings) -> ConceptKind | None:
    before, after = around
    is_in = before[0] in PLACE_PREPOSITIONS and after[:1] == [""] and len(after) > 1
    if before[0] in _NEAR or (is_in and KNOWN.get(after[1]) is ConceptKind.PLACE):
        return ConceptKind.PLACE
    if before[0] == "from" and len(before) > 1 and singular(before[1]) != before[1] and _is_thing(singular(before[1])):
        return ConceptKind.ORGANISATION
    if before[0] in _ON_A_PLATFORM:
        return ConceptKind.PRODUCT
    if before[0] == "the" and before[1:2] == ["at"]:
        return ConceptKind.PLACE
    return None


def _is_affiliated(before: Sequence[str]) -> bool:
    """Return True after a preposition, and perhaps an article, that follows a job, a purchase or a contract."""
    has_article = before[0] in _DEFINITE
    nearest, *others = (before[1:] if has_article else before) or [""]
    if has_article and nearest in _OF_A_POSITION:
        return False
    return (nearest in _OF_AN_ORGANISATION or nearest == "en") and not AFFILIATIONS.isdisjoint(others[:_WINDOW])


def kind_by_list(around: Surroundings) -> ConceptKind | None:
    """Return the kind of a name by the words around it that a name of a person rarely has.

    These are the ware after it, its class ("a library like Helmet"), a verb in the plural ("Hafner expect"), and an
    indefinite article ("bought a second-hand Trek").
    """
    before, after = around
    if after[:1] and after[0] in WARES:
        return ConceptKind.PRODUCT
    if after[:1] and after[0] in _OF_CUSTOMERS:
        return ConceptKind.ORGANISATION
    if before and (by_preposition := _by_weak_preposition(around)):
        return by_preposition
    if before[:1] and before[0] in _SUCH_AS:
        named = [CLASSES[one] for one in map(singular, before[1:3]) if one in CLASSES]
        return named[0] if named else None
    if after[:1] and after[0] in _PLURAL_VERBS:
        return ConceptKind.ORGANISATION
    is_one = not _INDEFINITE.isdisjoint(before[:2]) or not POSSESSED.isdisjoint(before[:1])
    return ConceptKind.PRODUCT if is_one and (not after or after[0] in ENDS_OF_PHRASES) else None
