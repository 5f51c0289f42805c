"""Decide which concepts are spellings of one thing or short for it, by the letters of their keys.

Vectors cannot: in small models a part is as similar to its whole, and a sister to a brother, as one spelling to
another. Synonyms ("sofa", "couch") stay two concepts. The rule is linear in the length of the keys.

The result depends only on the existing concepts, not on the order of arrival. Of concepts that match, the shortest key
is the root; claims of a caller or a model take precedence. `concepts.same_as` stores the end of such a chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache

from souvenir.knowledge.recognition.gazetteer import GIVEN_NAMES
from souvenir.knowledge.recognition.short_names import (
    CACHED_KEYS,
    handles,
    is_short_for,
    longest,
    possible_keys,
    sought_words,
)
from souvenir.knowledge.recognition.spelling import singular
from souvenir.store.graph import concept_similarity, mentions
from souvenir.store.graph.concepts import roots
from souvenir.store.rows import grouped
from souvenir.store.sql import Connection

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


@lru_cache(CACHED_KEYS)
def _letters(key: str) -> tuple[str, str]:
    """Return the letters of a key, and those of its words without what spellings of one word differ in."""
    words = [singular(word) for word in _SIGNS.split(key)]
    for british, american in _AMERICAN:
        words = [british.sub(american, word) for word in words]
    return _SIGNS.sub("", key), "".join(words)


def may_match(one: str, other: str) -> bool:
    """Return True if two keys are spellings of one thing; symmetric.

    They may differ in whitespace, hyphens and signs only (`web site`, `#website`). Unless a key is code, in which every
    letter is significant, words may also be a singular and a plural, or a British and an American spelling. Keys with
    different numbers never match.
    """
    (ours, our_words), (theirs, their_words) = _letters(one), _letters(other)
    if min(len(ours), len(theirs)) < MIN_LETTERS or _DIGITS.findall(one) != _DIGITS.findall(other):
        return False
    if ours == theirs:
        return not ours.isdigit()
    if _CODE.search(one) or _CODE.search(other) or any(sign.isdigit() for sign in ours):
        return False
    words, others = one.split(), other.split()
    # A name that differs in a letter is another name: Agnes and Agne.
    is_name = not GIVEN_NAMES.isdisjoint({*words} ^ {*others}) and len(words) == len(others)
    return our_words == their_words and not is_name


def may_be_one(one: str, other: str) -> bool:
    """Return True if two keys are spellings of one thing, or if one is short for the other; symmetric."""
    return may_match(one, other) or is_short_for(one, other) or is_short_for(other, one)


def matching(connection: Connection, namespace_id: int, ids: Iterable[int]) -> Mapping[int, set[int]]:
    """Return, for each of these concepts, the others of the namespace that it is a spelling of or short for."""
    keys = concept_similarity.all_keys(connection, namespace_id)
    wanted = {id_: keys.get(id_, "") for id_ in ids}
    alike = _by_part(keys, _letters, (part for key in wanted.values() for part in _letters(key)))
    longer = _by_part(keys, handles, (word for key in wanted.values() for word in sought_words(key)))
    found = {}
    for id_, key in wanted.items():
        spelled = {one for part in _letters(key) for one in alike.get(part, ()) if may_match(key, keys[one])}
        long = {one for word in sought_words(key) for one in longer.get(word, ()) if is_short_for(key, keys[one])}
        found[id_] = (spelled | long) - {id_}
    return found


def _by_part(
    keys: Mapping[int, str], parts: Callable[[str], tuple[str, ...]], chosen: Iterable[str]
) -> dict[str, list[int]]:
    """Return the concepts by each of these parts of their keys."""
    wanted = frozenset(chosen)
    return grouped((part, id_) for id_, key in keys.items() for part in parts(key) if part in wanted)


def store_matches(connection: Connection, namespace_id: int, found: Mapping[int, Collection[int]]) -> None:
    """Store the concepts that match these, and those that are short for them; update the roots of all affected ones.

    :param found: The result of `matching`.
    """
    keys = concept_similarity.keys(connection, {*found, *(other for others in found.values() for other in others)})
    possible: dict[int, set[int]] = {}
    for one in found.keys() & keys.keys():
        # In addition the concepts of which this name may be short, and those that may be short for it.
        names = concept_similarity.by_keys(connection, namespace_id, *possible_keys(keys[one]))
        short = {id_ for id_, key in names.items() if is_short_for(keys[one], key) or is_short_for(key, keys[one])}
        possible[one] = {*found[one]} & keys.keys() | short
    touched = {*possible, *concept_similarity.replace(connection, possible)}
    around = {other for others in concept_similarity.near(connection, touched).values() for other in others}
    concept_similarity.matched(connection, found)
    changed = [one for one in sorted(_with_root(connection, touched | around)) if assign_root(connection, one)]
    mentions.queue_matching(connection, concept_similarity.spellings(connection, changed))


def assign_roots(connection: Connection, namespace_id: int, new: Iterable[int]) -> None:
    """Compute the roots of all concepts of a graph, in which the matches of all but the new ones are stored."""
    store_matches(connection, namespace_id, matching(connection, namespace_id, new))
    for one in concept_similarity.with_other_names(connection):
        assign_root(connection, one)


def _with_root(connection: Connection, ids: Collection[int]) -> set[int]:
    """Return those of these concepts that have or may have another concept as their root: most have none."""
    spelled = {one for one, root in roots(connection, ids).items() if root != one}
    return spelled | concept_similarity.near(connection, ids).keys() | concept_similarity.stated(connection, ids).keys()


def assign_root(connection: Connection, concept_id: int) -> bool:
    """Recompute the root of a concept; returns True if it changed."""
    before, after = roots(connection, [concept_id]).get(concept_id), root_of(connection, concept_id)
    if before != (after or concept_id):
        concept_similarity.set_same(connection, concept_id, after)
    return before != (after or concept_id)


def root_of(connection: Connection, concept_id: int) -> int | None:
    """Return the root of the chain of spellings that a concept belongs to; None if it is the root."""
    path = [concept_id]
    while (following := _other_name(connection, path[-1])) is not None:
        if following in path:
            # A cycle of stated aliases: the concept with the first key is the root of all of them.
            ring = path[path.index(following) :]
            keys = concept_similarity.keys(connection, ring)
            following = min(ring, key=lambda one: _rank(keys[one]))
            return None if following == concept_id else following
        path.append(following)
    return None if path[-1] == concept_id else path[-1]


def _other_name(connection: Connection, concept_id: int) -> int | None:
    """Return the concept that this one is a spelling of, by a claim or else by its letters, or is short for."""
    said = concept_similarity.stated(connection, [concept_id]).get(concept_id)
    if said is not None:
        return None if said == concept_id else said
    others = concept_similarity.near(connection, [concept_id]).get(concept_id, [])
    keys = concept_similarity.keys(connection, [concept_id, *others])
    key = keys[concept_id]
    first = min(
        (one for one in keys if one == concept_id or may_match(key, keys[one])), key=lambda one: _rank(keys[one])
    )
    if first != concept_id:
        return first
    longer = {keys[one]: one for one in others if is_short_for(key, keys[one])}
    # None if several people have such names.
    name = longest(list(longer))
    return None if name is None else longer[name]


def _rank(key: str) -> tuple[int, str]:
    return len(key), key
