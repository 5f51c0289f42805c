"""What somebody says of concepts: names, descriptions, kinds, other names, and what one concept is to another.

A concept is there as soon as something that mentions it was read. One that nothing mentions has nothing to be said of:
it is told as unknown, with how much is still to be read, so that a caller can say it again later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_engine import MemoryEngine
from souvenir.concepts.spelling import key_of
from souvenir.graph.claiming import type_name
from souvenir.graph.reading import named
from souvenir.graph.typed_relations import relation_type
from souvenir.store import agents, claims, mentions, unread
from souvenir.store.claims import Claim, ClaimDraft
from souvenir.store.transaction import Transaction
from souvenir.types import ClaimedBy, ClaimKind, Scope


@dataclass(frozen=True, slots=True)
class SaidOfConcept:
    """:param key: The key of a concept, or one of its names."""

    key: str
    name: str | None = None
    description: str | None = None
    kind: str | None = None
    aliases: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SaidRelation:
    """What one concept is to another, each by its key or a name; `strength` is in [0, 1]."""

    from_key: str
    to_key: str
    relationship_type: str
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Stated:
    """:param stated: Claims that were stored; `unchanged` counts those that were there already.

    :param unknown: The keys that no concept has, as they were given.
    :param unread: How many messages and memories wait to be read.
    """

    stated: int
    unchanged: int
    unknown: Sequence[str]
    unread: int


class Stating:
    """Safe to call from any thread."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def state(self, scope: Scope, concepts: Sequence[SaidOfConcept], relations: Sequence[SaidRelation]) -> Stated:
        """Store what is not said yet, in one transaction.

        :raises AgentNotFound: If the namespace is no agent.
        :raises InvalidRequest: If a relation can be of no such type.
        """
        concepts, relations = self._screened(scope, concepts, relations)

        def work(tx: Transaction) -> Stated:
            agents.known(tx.connection, scope)
            keys = [one.key for one in concepts] + [end for one in relations for end in (one.from_key, one.to_key)]
            ids = _ids(tx, keys)
            said = [*_of_concepts(tx, concepts, ids), *_of_relations(relations, ids)]
            stored = _store(tx, said)
            unknown = [key for key in dict.fromkeys(keys) if key not in ids]
            return Stated(stored, len(said) - stored, unknown, unread.count(tx.connection, tx.namespace_id))

        return self._engine.write(scope, work)

    def _screened(
        self, scope: Scope, concepts: Sequence[SaidOfConcept], relations: Sequence[SaidRelation]
    ) -> tuple[Sequence[SaidOfConcept], Sequence[SaidRelation]]:
        """As the agent's policy lets them in. A key is looked up and not stored."""
        applied = self._engine.screening.applied(scope)
        safe = applied.text
        return [
            SaidOfConcept(
                one.key,
                None if one.name is None else safe(one.name),
                None if one.description is None else safe(one.description),
                None if one.kind is None else type_name(safe(one.kind)),
                [safe(alias) for alias in one.aliases],
            )
            for one in concepts
        ], [
            SaidRelation(one.from_key, one.to_key, relation_type(safe(one.relationship_type)), one.strength)
            for one in relations
        ]


def _ids(tx: Transaction, names: Iterable[str]) -> Mapping[str, int]:
    """The concepts that there are, by a key or a name of theirs."""
    names = list(dict.fromkeys(names))
    known = mentions.known_keys(tx.connection, tx.namespace_id, names)
    found = {name: known.get(name) or named(tx.connection, tx.namespace_id, name) for name in names}
    return {name: id_ for name, id_ in found.items() if id_ is not None}


def _store(tx: Transaction, said: Sequence[ClaimDraft]) -> int:
    """Store what no caller said already; how much that was."""
    held = [
        claim
        for claim in claims.of_concepts(tx.connection, {one.concept_id for one in said})
        if claim.made_by is ClaimedBy.CALLER
    ]
    known = {(one.kind, one.concept_id, one.other_id, one.text, one.confidence) for one in _counting(held)}
    new = [one for one in said if (one.kind, one.concept_id, one.other_id, one.text, one.confidence) not in known]
    for one in new:
        claims.insert(tx.connection, tx.namespace_id, one, tx.now)
    return len(new)


def _counting(held: Iterable[Claim]) -> Iterator[Claim]:
    """Of what was said again otherwise, the last."""
    last = dict[tuple[ClaimKind, int], Claim]()
    for one in held:
        if one.kind in (ClaimKind.ALIAS, ClaimKind.RELATION):
            yield one
        else:
            last[one.kind, one.concept_id] = one
    yield from last.values()


def _of_concepts(tx: Transaction, said: Sequence[SaidOfConcept], ids: Mapping[str, int]) -> Iterator[ClaimDraft]:
    keys = {alias: key_of(alias) for one in said for alias in one.aliases}
    spelled = mentions.known_keys(tx.connection, tx.namespace_id, set(keys.values()))
    for one in said:
        concept_id = ids.get(one.key)
        if concept_id is None:
            continue
        single = (ClaimKind.NAME, one.name), (ClaimKind.DESCRIPTION, one.description), (ClaimKind.KIND, one.kind)
        yield from (ClaimDraft(kind, concept_id, text, ClaimedBy.CALLER) for kind, text in single if text)
        for alias in dict.fromkeys(one.aliases):
            other = spelled.get(keys[alias])
            if other is None:
                yield ClaimDraft(ClaimKind.ALIAS, concept_id, alias, ClaimedBy.CALLER)
            elif other != concept_id:
                yield ClaimDraft(ClaimKind.ALIAS, other, alias, ClaimedBy.CALLER, concept_id)


def _of_relations(said: Iterable[SaidRelation], ids: Mapping[str, int]) -> Iterator[ClaimDraft]:
    for one in said:
        ends = ids.get(one.from_key), ids.get(one.to_key)
        if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
            yield ClaimDraft(
                ClaimKind.RELATION, ends[0], one.relationship_type, ClaimedBy.CALLER, ends[1], one.strength
            )
