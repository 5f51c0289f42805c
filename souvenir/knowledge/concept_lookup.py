"""Find the concepts that a name or a question refers to, under all spellings and stated names.

Read-only functions over a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from souvenir.core.errors import ConceptNotFound
from souvenir.core.types import ClaimKind, Scope
from souvenir.knowledge.concept_ranking import rarity
from souvenir.knowledge.recognition.extraction import keys_in_question, mentioned
from souvenir.knowledge.recognition.spelling import key_of
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import claims
from souvenir.store.graph import concepts as rows
from souvenir.store.graph.concepts import Concept
from souvenir.store.graph.mentions import Spelling, known_keys
from souvenir.store.messages import agents
from souvenir.store.sql import Connection

_NAMES = (ClaimKind.NAME, ClaimKind.ALIAS)


def require_concept(connection: Connection, namespace_id: int, name_or_id: str | int) -> Concept:
    """Return the root concept of an id, or of a name in any spelling.

    :raises ConceptNotFound: If there is none.
    """
    id_ = find_by_name(connection, namespace_id, name_or_id) if isinstance(name_or_id, str) else name_or_id
    found = {} if id_ is None else rows.by_ids(connection, namespace_id, [id_])
    if id_ is None or id_ not in found:
        raise ConceptNotFound(name_or_id)
    return found[id_]


def require_concepts(engine: MemoryEngine, scope: Scope, *concept_ids: int) -> None:
    """Check before a write that the concepts exist, since every write creates the namespace of its scope.

    :raises AgentNotFound: If the namespace is no agent. :raises ConceptNotFound: If one does not exist.
    """
    with engine.namespace(scope) as (connection, _):
        namespace_id = agents.require_agent(connection, scope).namespace_id
        for id_ in concept_ids:
            require_concept(connection, namespace_id, id_)


def keys_of_name(name: str) -> list[str]:
    """Return the possible keys of a concept with this name, most likely first."""
    read = mentioned(name)
    return [key_of(name), *(one.key for one in read if len(read) == 1)]


def find_by_name(connection: Connection, namespace_id: int, name: str) -> int | None:
    """Return the id of the root concept of a name in any spelling; stated names precede those found in texts."""
    wanted = key_of(name)
    if not wanted:
        return None
    for text, concept_id in rows.stated_names(connection, namespace_id):
        if key_of(text) == wanted:
            return rows.roots(connection, [concept_id])[concept_id]
    keys = keys_of_name(name)
    ids = known_keys(connection, namespace_id, keys)
    found = next((ids[key] for key in keys if key in ids), None)
    return None if found is None else rows.roots(connection, [found])[found]


def all_names(connection: Connection, namespace_id: int, root_id: int) -> tuple[list[int], list[str]]:
    """Return the ids of all spellings of a concept, stated ones included, and its stated keys that no concept has."""
    members = rows.members(connection, root_id)
    stated_spellings = claims.aliases_of(connection, members)
    members = list(dict.fromkeys([*members, *(one.concept_id for one in stated_spellings)]))
    names = [one.text for one in claims.of_concepts(connection, members) if one.kind in _NAMES]
    keys = {key for name in names for key in keys_of_name(name)}
    return members, sorted(keys - known_keys(connection, namespace_id, keys).keys())


@dataclass(frozen=True, slots=True)
class NamedConcepts:
    """The concepts that a question names, in its order.

    :param names: The name of each by the id of its root. :param spellings: All of their spellings, each weighted by
        the rarity of its root, in [0, 1].
    """

    names: Mapping[int, str]
    spellings: tuple[Spelling, ...]


def named_in(connection: Connection, namespace_id: int, text: str) -> NamedConcepts:
    """Return the concepts of an agent that a question names."""
    keys = keys_in_question(text)
    wanted, stated = set(keys), dict[str, int]()
    for name, concept_id in rows.stated_names(connection, namespace_id):
        if (key := key_of(name)) in wanted:
            stated.setdefault(key, concept_id)
    ids = known_keys(connection, namespace_id, keys) | stated
    if not ids:
        return NamedConcepts({}, ())
    roots = rows.roots(connection, ids.values())
    named = dict.fromkeys(roots[ids[key]] for key in keys if key in ids and ids[key] in roots)
    shown = rows.by_ids(connection, namespace_id, named)
    read = rows.owners_read(connection, namespace_id)
    weights = {root: rarity(shown[root].owners, read) for root in named if root in shown}
    spellings = tuple(
        Spelling(concept_id, root, weights[root]) for concept_id, root in rows.spellings(connection, weights).items()
    )
    return NamedConcepts({root: shown[root].name for root in weights}, spellings)
