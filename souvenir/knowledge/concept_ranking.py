"""Rank concepts by significance, and weigh their co-occurrence, by counts of the texts that mention them.

`rarity` and `strength` are pure functions of counts. The others take a connection inside a transaction, write nothing
and read a bounded number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import nlargest
from itertools import permutations
from math import exp, log

from souvenir.core.concept_kinds import NAMED_KINDS
from souvenir.core.ended_roles import is_left
from souvenir.core.types import ConceptKind
from souvenir.index.analyser import fold
from souvenir.knowledge.recognition.definitions import SELF
from souvenir.knowledge.recognition.foreign import compound_kind
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
)
from souvenir.store.graph import concepts as rows
from souvenir.store.graph.statements import ends
from souvenir.store.privacy import Hidden
from souvenir.store.sql import Connection

HALF_LIFE_MONTHS = 12.0
"""After a year in which no text mentions both concepts, a relation has half its strength."""

SHRINKAGE = 2.0
"""Number of co-occurrences at which an association has half its weight (see `strength`)."""

MAY_BE_COMMON = 64
"""Upper bound for concepts that more than 1/e of all texts mention: a text has at most 16 mentions, so there are at
most 43. Below that share, more mentions always mean a higher rank (x log(1/x) rises up to 1/e).
"""

CANDIDATES_READ = 6
"""How many times the wanted number of significant concepts are read to choose those that introduce an agent."""

RECURS, RECURS_AS_THING = 2, 3
"""How many messages or memories of people must mention a person or an animal, or a name of another kind, to introduce
an agent if no text says what it is to the user.
"""

_ARTICLES = frozenset("a an the der die das dem den ein eine einen einem einer el la los las un una een de het".split())
"""First words of a role that says what something is, but not to whom: "a surgeon", "the insurer"."""

HOLDS = timedelta(days=28)
"""Period before the latest mention of anything in which a role that can end holds, if the name is said once only: the
boss or the flatmate of earlier is often another one now."""

_LASTING = RELATIVES | ANIMALS | frozenset("friend amigo amiga freund vriend".split())
"""Words of roles that seldom end."""

_LIVING = (ConceptKind.PERSON, ConceptKind.ANIMAL)

MAX_COMPARED = 64
"""Maximum number of chosen concepts whose names are compared."""

COMMON_NOUNS = COMMON_WORDS | RELATIVES | ROLES | ANIMALS | HEADS.keys() | PHRASE_HEADS.keys() | CLASSES.keys()
"""Words that stand for someone or something of a kind: "manager", "shop", "Krankenhaus"."""

MAX_OFFSET = 2**40
"""More than the possible number of concepts."""

SHORT_HISTORY = 16
"""Added to the number of texts (smoothing), so that in a short history a concept of every text has a positive weight.
"""


def rarity(owners: int, total: int) -> float:
    """Return the rarity of a concept in an agent's history, in [0, 1]: normalised inverse document frequency.

    ``log(total / owners) / log(total)`` (Spärck Jones 1972): 1 for a concept of one text, 0 for a concept of every
    text.

    :param owners: Number of messages and memories that mention it.
    :param total: Number of analysed texts.
    """
    owners = max(owners, 1)
    if total <= owners:
        return 0.0
    return log(total / owners) / log(total)


def strength(together_by_month: Mapping[int, int], a: int, b: int, total: int, now_month: int) -> float:
    """Return the strength of the relation of two concepts, in [0, 1]; 0 if they co-occur no more often than by chance.

    Normalised pointwise mutual information, ``log(p(a, b) / (p(a) p(b))) / -log p(a, b)`` (Bouma 2009, eq. 6; negative
    values are 0), times ``n / (n + SHRINKAGE)`` because PMI overrates single co-occurrences (a discount like that of
    Pantel and Lin 2002), times the mean decay ``2 ** (-age / HALF_LIFE_MONTHS)`` of the co-occurrences.

    :param together_by_month: Number of messages and memories of a month that mention both.
    :param a: Number that mention the first; likewise `b` for the second.
    :param total: Number of analysed texts.
    :param now_month: The month from which age is counted; later months have age 0.
    """
    together = sum(together_by_month.values())
    if together <= 0 or total <= 0:
        return 0.0
    a, b, total = max(a, together), max(b, together), max(total, a, b)
    association = 1.0 if together == total else log(together * total / (a * b)) / -log(together / total)
    decayed = sum(
        count * exp(-log(2) * max(now_month - month, 0) / HALF_LIFE_MONTHS)
        for month, count in together_by_month.items()
    )
    return min(max(association, 0.0), 1.0) * together / (together + SHRINKAGE) * decayed / together


def top(
    connection: Connection, namespace_id: int, hidden: Hidden, *, limit: int, offset: int = 0
) -> list[rows.Concept]:
    """Return the most significant concepts of an agent: mentioned often, but not in every text.

    :param hidden: As in `by_ids`.
    """
    enough = min(offset, MAX_OFFSET) + limit + MAY_BE_COMMON
    counted = rows.most_used(connection, namespace_id, limit=enough)
    used = {id_: counted[id_] for id_ in nlargest(enough, counted, key=lambda id_: (counted[id_], id_))}
    total = rows.owners_read(connection, namespace_id) + SHORT_HISTORY
    ordered = sorted(used, key=lambda id_: (-used[id_] * rarity(used[id_], total), -used[id_], -id_))
    chosen = ordered[offset : offset + limit]
    shown = rows.by_ids(connection, namespace_id, chosen, hidden)
    return [shown[id_] for id_ in chosen if id_ in shown]


def worth_reading(connection: Connection, namespace_id: int, hidden: Hidden, *, limit: int) -> list[rows.Concept]:
    """Return the concepts that introduce an agent: those of which something is said, then names that recur.

    Left out are the name of the user, concepts that only the assistant mentions, common nouns, phrases, and the shorter
    of two names; and unless a text says what they are, whom or what was left (a colleague who resigned). Names of an
    unknown kind, and names that people mention seldom, are left out unless a text says what they are to the user, and
    may do so still. A description or a role counts as much as twice the mentions; of equal ones the latest comes first.

    :param hidden: As in `by_ids`.
    """
    found = [_in_brief(one) for one in top(connection, namespace_id, hidden, limit=CANDIDATES_READ * limit)]
    uses = rows.uses_by_people(connection, [one.id for one in found], limit=RECURS_AS_THING)

    def value(one: rows.Concept) -> float:
        return log(1 + one.owners) + log(2) * ((one.kind in NAMED_KINDS) + _is_described(one))

    latest = max((one.last_at for one in found if one.last_at), default=None)
    told = [one for one in found if uses[one.id] and _tells(one, uses[one.id], latest)]
    since = min((one.first_at for one in told if one.first_at and not _is_described(one)), default=None)
    ended = ends(connection, namespace_id, since, hidden) if since else []
    told = [one for one in told if _is_described(one) or not is_left((one.key,), ended)]
    # Sorting is stable, so that the order of significance decides between equal values and times.
    ordered = sorted(told, key=lambda one: (-value(one), -_time_of(one)))
    return _without_shorter_names(ordered)[:limit]


def _is_described(one: rows.Concept) -> bool:
    return one.description is not None or one.role is not None


def _tells(one: rows.Concept, uses: int, latest: datetime | None) -> bool:
    """Return whether a concept tells a reader something: by what is said of it, or as a name that recurs.

    :param uses: Number of messages and memories of people that mention it. :param latest: The latest time of a concept.
    """
    if one.role == SELF or (one.kind == ConceptKind.PHRASE and "description" not in one.stated):
        return False
    if _is_described(one):
        # "cat" and "Freund" are no names, but a dog called "Bishop" has one.
        is_written_as_noun = one.name[:1].islower() or one.key in RELATIVES | ROLES
        if "description" not in one.stated and is_written_as_noun and _is_common_noun(one):
            return False
        if "description" in one.stated or _holds(one, uses, latest):
            return True
    is_name = one.kind in NAMED_KINDS and one.kind != ConceptKind.NAME and not _is_common_noun(one)
    return is_name and uses >= (RECURS if one.kind in _LIVING else RECURS_AS_THING)


def _holds(one: rows.Concept, uses: int, latest: datetime | None) -> bool:
    """Return whether the role says what something is to a person, and does not seem to be of the past."""
    words = fold((one.role or "").casefold()).split()
    if words[:1] and words[0] in _ARTICLES:
        return False
    is_old = latest is not None and one.last_at is not None and one.last_at < latest - HOLDS
    return uses > 1 or not is_old or not _LASTING.isdisjoint(words)


def _in_brief(one: rows.Concept) -> rows.Concept:
    """Leave out a sentence of a text: it is about what happened more often than it introduces who or what it names."""
    return one if "description" in one.stated else replace(one, description=None)


def _is_common_noun(one: rows.Concept) -> bool:
    if " " in one.key or one.key in GIVEN_NAMES or one.key in NAMES_AND_WORDS:
        return False
    in_kind = KNOWN.get(one.key) == one.kind and one.key not in COMMON_NOUNS
    is_noun = one.kind == ConceptKind.PHRASE or one.key in COMMON_NOUNS or compound_kind(one.key) is not None
    return is_noun and not in_kind


def _without_shorter_names(ordered: Sequence[rows.Concept]) -> list[rows.Concept]:
    """Leave out one of two concepts if its name is part of the other's: the one that is not described, or the shorter.

    If both are described, and are of different kinds, both stay: "Leeds" and "Leeds Infirmary".
    """
    kept = list(ordered[:MAX_COMPARED])
    for short, long in permutations(ordered[:MAX_COMPARED], 2):
        if len(short.key) < len(long.key) and f" {short.key} " in f" {long.key} ":
            if _is_described(short) and _is_described(long) and short.kind != long.kind:
                continue
            left_out = long if _is_described(short) and not _is_described(long) else short
            kept = [one for one in kept if one is not left_out]
    return kept


def _time_of(concept: rows.Concept) -> float:
    return 0.0 if concept.last_at is None else concept.last_at.timestamp()
