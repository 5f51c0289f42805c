"""Which concepts are another spelling of which: by what somebody said, or by how near they are.

A function of the concepts that there are and of their vectors, whatever the order in which they came. Two concepts that
are each other's nearest by a margin are one thing, and the longer key of the two is a spelling of the shorter; what a
caller or a model says of one of them goes before that. `concepts.same_as` leads to the end of such a chain at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import apsw

from memory_engine import MemoryEngine
from souvenir.concepts.matching import CANDIDATE_SIMILARITY, is_match, may_match
from souvenir.index.registry import IndexKey
from souvenir.store import mentions, near
from souvenir.store.near import Near
from souvenir.types import PassageKind

NEAREST = 32
"""Concepts that are looked at for each: most that are near by meaning are something else by their letters."""


def near_to(engine: MemoryEngine, namespace_id: int, ids: Iterable[int]) -> Mapping[int, list[Near]]:
    """What is near to each of these concepts by the index, whatever they are called."""
    key, wanted = IndexKey(namespace_id, PassageKind.CONCEPT), list(ids)
    found = engine.models.using(lambda serving: serving.registry.get(key).near(wanted, NEAREST))
    return {
        one: [Near(other, cosine) for other, cosine in others if cosine >= CANDIDATE_SIMILARITY]
        for one, others in found.items()
    }


def settle(connection: apsw.Connection, found: Mapping[int, list[Near]]) -> None:
    """Store what is near to these concepts, and what follows from it for them and others."""
    keys = near.keys(connection, {*found, *(one.concept_id for others in found.values() for one in others)})
    possible = {
        one: [other for other in others if other.concept_id in keys and may_match(keys[one], keys[other.concept_id])]
        for one, others in found.items()
        if one in keys
    }
    touched = {*possible, *near.replace(connection, possible)}
    around = {other.concept_id for others in near.near(connection, touched).values() for other in others}
    near.matched(connection, found)
    changed = [one for one in sorted(touched | around) if _assign(connection, one)]
    mentions.unmatch(connection, near.spellings(connection, changed))


def _assign(connection: apsw.Connection, concept_id: int) -> bool:
    """Whether it is another spelling of something else than before."""
    before, after = near.same_as(connection, [concept_id]).get(concept_id), root_of(connection, concept_id)
    if before != after:
        near.set_same(connection, concept_id, after)
    return before != after


def root_of(connection: apsw.Connection, concept_id: int) -> int | None:
    """What a concept is another spelling of in the end; None if it stands for itself."""
    path = [concept_id]
    while (following := _other_name(connection, path[-1])) is not None:
        if following in path:
            # Said to be each other: the one whose key is the first stands for all of them.
            ring = path[path.index(following) :]
            keys = near.keys(connection, ring)
            following = min(ring, key=lambda one: (len(keys[one]), keys[one]))
            return None if following == concept_id else following
        path.append(following)
    return None if path[-1] == concept_id else path[-1]


def _other_name(connection: apsw.Connection, concept_id: int) -> int | None:
    """The concept that this one is a spelling of, by what is said of it or else by what is near."""
    said = near.stated(connection, [concept_id]).get(concept_id)
    if said is not None:
        return said
    pair = _pair(connection, concept_id)
    if pair is None or _pair(connection, pair) != concept_id:
        return None
    keys = near.keys(connection, [concept_id, pair])
    first = min(keys, key=lambda one: (len(keys[one]), keys[one]))
    return None if first == concept_id else first


def _pair(connection: apsw.Connection, concept_id: int) -> int | None:
    """The one concept that is near enough, and nearer than any other by a margin."""
    others = near.near(connection, [concept_id]).get(concept_id, [])
    if not others:
        return None
    runner_up = others[1].similarity if len(others) > 1 else None
    return others[0].concept_id if is_match(others[0].similarity, runner_up) else None
