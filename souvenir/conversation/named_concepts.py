"""The concepts that a question names, under whichever of their spellings and stated names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import apsw

from souvenir.concepts.naming import possible_keys
from souvenir.concepts.spelling import key_of
from souvenir.concepts.weights import rarity
from souvenir.store import concepts
from souvenir.store.mentioning import Spelling
from souvenir.store.mentions import known_keys


@dataclass(frozen=True, slots=True)
class NamedConcepts:
    """In the order of the question, what is mentioned first.

    :param names: How each is called, by its root's id. :param spellings: All of their spellings; what mentioning one
        counts is how rare its root is, in [0, 1].
    """

    names: Mapping[int, str]
    spellings: tuple[Spelling, ...]


def named_in(connection: apsw.Connection, namespace_id: int, text: str) -> NamedConcepts:
    """Those of an agent's concepts that a question names."""
    keys = possible_keys(text)
    wanted, stated = set(keys), dict[str, int]()
    for name, concept_id in concepts.stated_names(connection, namespace_id):
        if (key := key_of(name)) in wanted:
            stated.setdefault(key, concept_id)
    ids = known_keys(connection, namespace_id, keys) | stated
    if not ids:
        return NamedConcepts({}, ())
    roots = concepts.roots(connection, ids.values())
    named = dict.fromkeys(roots[ids[key]] for key in keys if key in ids and ids[key] in roots)
    shown = concepts.by_ids(connection, namespace_id, named)
    read = concepts.owners_read(connection, namespace_id)
    weights = {root: rarity(shown[root].owners, read) for root in named if root in shown}
    spellings = tuple(
        Spelling(concept_id, root, weights[root])
        for concept_id, root in concepts.spellings(connection, weights).items()
    )
    return NamedConcepts({root: shown[root].name for root in weights}, spellings)
