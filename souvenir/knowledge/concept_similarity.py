"""Decide which concepts are spellings of one thing, by their keys and the cosine of their vectors.

Vectors alone cannot: in small models a part is as similar to its whole, and a sister to a brother, as one spelling to
another. So the letters must allow it and the vectors must agree; synonyms ("sofa", "couch") stay two concepts. Pure;
linear in the length of the keys. docs/benchmarks.md describes how the constants were chosen.

The result depends only on the existing concepts and their vectors, not on the order of arrival. Two concepts that are
mutual nearest neighbours by a margin are one thing, and the longer key is a spelling of the shorter; claims of a caller
or a model take precedence. `concepts.same_as` stores the end of such a chain.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from souvenir.core.types import PassageKind, Scope
from souvenir.index.index_key import IndexKey
from souvenir.knowledge.recognition.gazetteer import GIVEN_NAMES
from souvenir.knowledge.recognition.short_names import is_short_for, longest, possible_keys
from souvenir.knowledge.recognition.spelling import singular
from souvenir.memories.engine import MemoryEngine
from souvenir.store import namespaces
from souvenir.store.graph import concept_similarity, mentions
from souvenir.store.graph.concept_similarity import Near
from souvenir.store.sql import Connection

CANDIDATE_SIMILARITY = 0.75
"""Minimum cosine of matching keys: `metre` and `meter` have .83, `http` and `https` .71."""

MATCH_MARGIN = 0.005
"""Minimum lead of the nearest candidate over the next one; a smaller lead would be a guess."""

MIN_LETTERS = 4
"""Minimum length of keys that may differ in a joint or an ending; shorter ones match by accident."""

_SIGNS = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")
_CODE = re.compile(r"[_./@]")
_AMERICAN = (
    (re.compile(r"(?<=\w\w)our(?=$|[aei])"), "or"),
    (re.compile(r"(?<=[bt])re$"), "er"),
    (re.compile(r"is(?=e$|ed$|er$|ing$|ation)"), "iz"),
)
"""British endings and the American ones: colour, favourite, theatre, organise, organisation."""


def may_match(one: str, other: str) -> bool:
    """Return True if the letters of two keys allow them to be spellings of one thing; symmetric.

    They may differ in whitespace, hyphens and signs only (`web site`, `#website`). Unless a key is code, in which every
    letter is significant, words may also be a singular and a plural, or a British and an American spelling, and one key
    may be the initials of the other (`nyc`). Keys with different numbers never match.
    """
    if _DIGITS.findall(one) != _DIGITS.findall(other):
        return False
    ours, theirs = _SIGNS.sub("", one), _SIGNS.sub("", other)
    if ours == theirs:
        return len(ours) >= MIN_LETTERS and not ours.isdigit()
    if _CODE.search(one) or _CODE.search(other) or any(sign.isdigit() for sign in ours):
        return False
    words, others = one.split(), other.split()
    if not GIVEN_NAMES.isdisjoint({*words} ^ {*others}) and len(words) == len(others):
        # A name that differs in a letter is another name: Agnes and Agne, Sara and Sarah.
        return False
    if min(len(ours), len(theirs)) >= MIN_LETTERS and _joined(one) == _joined(other):
        return True
    return _are_initials(one, others) or _are_initials(other, words)


def may_be_one(one: str, other: str) -> bool:
    """Return True if two keys may be spellings of one thing, or if one is short for the other; symmetric."""
    return may_match(one, other) or is_short_for(one, other) or is_short_for(other, one)


def is_match(similarity: float, runner_up: float | None) -> bool:
    """Return True if the nearest of the concepts that may match is the same thing.

    :param runner_up: The cosine of the second nearest of them; None if there is no other.
    """
    clear = runner_up is None or similarity - runner_up >= MATCH_MARGIN
    return similarity >= CANDIDATE_SIMILARITY and clear


def _joined(key: str) -> str:
    """Return the words of a key without what their spellings differ in: joints, plurals, British endings."""
    words = [singular(word) for word in _SIGNS.split(key)]
    for british, american in _AMERICAN:
        words = [british.sub(american, word) for word in words]
    return "".join(words)


def _are_initials(short: str, words: list[str]) -> bool:
    return len(words) > 1 and short not in words and short == "".join(word[0] for word in words)


NEAREST = 32
"""Number of neighbours considered per concept: most concepts with a similar meaning differ in their letters."""


def nearest_concepts(engine: MemoryEngine, namespace_id: int, ids: Iterable[int]) -> Mapping[int, list[Near]]:
    """Return the nearest concepts of each of these in the index, whatever their keys are."""
    key, wanted = IndexKey(namespace_id, PassageKind.CONCEPT), list(ids)
    with engine.namespace(Scope()) as (connection, _):
        change_seq = namespaces.change_seq(connection, namespace_id)
    found = engine.models.using(lambda serving: serving.registry.get(key, change_seq).near(wanted, NEAREST))
    return {
        one: [Near(other, cosine) for other, cosine in others if cosine >= CANDIDATE_SIMILARITY]
        for one, others in found.items()
    }


def store_matches(connection: Connection, namespace_id: int, found: Mapping[int, list[Near]]) -> None:
    """Store the nearest concepts of these, and update the roots of these and of affected concepts."""
    own_keys = concept_similarity.keys(connection, found)
    found = {
        one: [*others, *_related_names(connection, namespace_id, own_keys[one], {other.concept_id for other in others})]
        for one, others in found.items()
        if one in own_keys
    }
    keys = concept_similarity.keys(
        connection, {*found, *(one.concept_id for others in found.values() for one in others)}
    )
    possible = {
        one: [other for other in others if other.concept_id in keys and may_be_one(keys[one], keys[other.concept_id])]
        for one, others in found.items()
        if one in keys
    }
    touched = {*possible, *concept_similarity.replace(connection, possible)}
    around = {other.concept_id for others in concept_similarity.near(connection, touched).values() for other in others}
    concept_similarity.matched(connection, found)
    changed = [one for one in sorted(touched | around) if _assign(connection, one)]
    mentions.queue_matching(connection, concept_similarity.spellings(connection, changed))


def assign_roots(connection: Connection, namespace_id: int, new: Iterable[int]) -> None:
    """Compute the roots of all concepts of a graph, in which the similarities of all but the new ones are stored.

    :param new: Concepts without vectors: only names that are short for others are found for them.
    """
    store_matches(connection, namespace_id, {one: [] for one in new})
    for one in concept_similarity.with_other_names(connection):
        _assign(connection, one)


def _related_names(connection: Connection, namespace_id: int, key: str, known: Collection[int]) -> list[Near]:
    """Return the concepts of which this name may be short, and those that may be short for it, of any vector."""
    keys, prefix = possible_keys(key)
    others = concept_similarity.by_keys(connection, namespace_id, keys, prefix)
    return [
        Near(id_, 0.0)
        for id_, other in others.items()
        if id_ not in known and (is_short_for(key, other) or is_short_for(other, key))
    ]


def _assign(connection: Connection, concept_id: int) -> bool:
    """Recompute the root of a concept; returns True if it changed."""
    before, after = (
        concept_similarity.same_as(connection, [concept_id]).get(concept_id),
        root_of(connection, concept_id),
    )
    if before != after:
        concept_similarity.set_same(connection, concept_id, after)
    return before != after


def root_of(connection: Connection, concept_id: int) -> int | None:
    """Return the root of the chain of spellings that a concept belongs to; None if it is the root."""
    path = [concept_id]
    while (following := _other_name(connection, path[-1])) is not None:
        if following in path:
            # A cycle of stated aliases: the concept with the first key is the root of all of them.
            ring = path[path.index(following) :]
            keys = concept_similarity.keys(connection, ring)
            following = min(ring, key=lambda one: (len(keys[one]), keys[one]))
            return None if following == concept_id else following
        path.append(following)
    return None if path[-1] == concept_id else path[-1]


def _other_name(connection: Connection, concept_id: int) -> int | None:
    """Return the concept that this one is a spelling of, by a claim or else by similarity."""
    said = concept_similarity.stated(connection, [concept_id]).get(concept_id)
    if said is not None:
        return None if said == concept_id else said
    pair = _pair(connection, concept_id)
    if pair is None or _pair(connection, pair) != concept_id:
        return _longer_name(connection, concept_id)
    keys = concept_similarity.keys(connection, [concept_id, pair])
    first = min(keys, key=lambda one: (len(keys[one]), keys[one]))
    return None if first == concept_id else first


def _longer_name(connection: Connection, concept_id: int) -> int | None:
    """Return the concept whose name this one is short for; None if several people have such names."""
    others = [near.concept_id for near in concept_similarity.near(connection, [concept_id]).get(concept_id, [])]
    keys = concept_similarity.keys(connection, [concept_id, *others])
    longer = {keys[one]: one for one in others if is_short_for(keys[concept_id], keys[one])}
    name = longest(list(longer))
    return None if name is None else longer[name]


def _pair(connection: Connection, concept_id: int) -> int | None:
    """Return the one concept that is similar enough, and more similar than any other by a margin."""
    others = concept_similarity.near(connection, [concept_id]).get(concept_id, [])
    if not others:
        return None
    runner_up = others[1].similarity if len(others) > 1 else None
    return others[0].concept_id if is_match(others[0].similarity, runner_up) else None
