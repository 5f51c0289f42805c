"""The concepts that the entities of the knowledge graph are, as far as the entities themselves state it.

An entity is a mention of the concept of its name, in any script and case, whatever the recogniser finds in it. Its type
is the kind of the concept, its relations are relations of the concepts, and a name that is written as an identifier is
a further name. These claims are derived from the memories, and made again whenever one of them changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from souvenir.core.concept_kinds import UNTYPED
from souvenir.core.timestamps import from_us
from souvenir.core.types import ClaimedBy, ClaimKind, ConceptKind, Mentioned, RecordKind
from souvenir.knowledge.claim_types import type_name
from souvenir.knowledge.entities import heading, shown_name
from souvenir.knowledge.recognition.extraction import mentioned, mentions_in
from souvenir.knowledge.recognition.spelling import key_of
from souvenir.knowledge.recognition.statements import definitions_and_statements
from souvenir.store.graph import mentions, relations
from souvenir.store.graph.claims import Claim, ClaimDraft
from souvenir.store.graph.mention_queue import Unread
from souvenir.store.graph.mentions import Reading
from souvenir.store.graph.relations import EntityGraph, EntityRelation, NamedMemory
from souvenir.store.sql import Connection

_PREDICATE = re.compile(r"(?:is|are|was|were|works|lives) ", re.IGNORECASE)


def reading_of(item: Unread, entities: Mapping[int, NamedMemory]) -> Reading:
    """Analyse a message or a memory; a mention of an unknown kind has that of its definition.

    :param entities: The memories that are entities.
    """
    named = entities.get(item.owner_id) if item.kind is RecordKind.MEMORY else None
    if named is None:
        text, found = item.text, mentions_in(item.text, item.role)
    else:
        text, found = _sentences(item.text, named), _mentions_of(item.text, named)
    definitions, statements = definitions_and_statements(text, item.role, found, item.at)
    defined = {key: one.kind for key, one in definitions.items() if one.kind is not None}
    # A pet may have the name of a person, and a person that of a place.
    living = {key for key, kind in defined.items() if kind in (ConceptKind.ANIMAL, ConceptKind.PERSON)}
    typed = [
        replace(one, kind=defined[one.key])
        if one.key in defined and (one.kind in UNTYPED or one.key in living)
        else one
        for one in found
    ]
    return Reading(item.id, item.kind, item.owner_id, item.at, typed, definitions, statements)


def _mentions_of(text: str, named: NamedMemory) -> tuple[Mentioned, ...]:
    """Return the mentions of an entity, which begin with its own concept."""
    own = _concept_named(named.name)
    found = mentions_in(_observations(text, named), None)
    return *([own] if own.key else []), *(one for one in found if one.key != own.key)


def _sentences(text: str, named: NamedMemory) -> str:
    """Return the observations of an entity; those that begin with a verb get its name."""
    lines, name = _observations(text, named).splitlines(), shown_name(named.name)
    return "\n".join(f"{name} {line[0].lower()}{line[1:]}" if _PREDICATE.match(line) else line for line in lines)


def stated_claims(connection: Connection, namespace_id: int, named: Iterable[NamedMemory]) -> list[ClaimDraft]:
    """Return the claims that these entities state, with all of their relations; none about a concept that is hidden."""
    found: list[ClaimDraft] = []
    for source, of_source in groupby(sorted(named, key=lambda one: (one.source, one.id)), key=lambda one: one.source):
        found.extend(_claims_in(connection, EntityGraph(namespace_id, source), list(of_source)))
    return found


def content_of(one: Claim | ClaimDraft) -> tuple[object, ...]:
    """Return the values by which the claim of an entity is recognised when it is derived again."""
    return one.memory_id, one.kind, one.concept_id, one.other_id, one.text, one.other_memory_id


def _claims_in(connection: Connection, place: EntityGraph, named: Sequence[NamedMemory]) -> Iterator[ClaimDraft]:
    of_names = relations.ids_of(connection, place, [one.name for one in named])
    related = relations.dated_relations(connection, place, of_names)
    ends = {name for relation, _ in related for name in (relation.from_entity, relation.to_entity)}
    memory_of = {one.name: one.id for one in named} | relations.living(connection, place, ends)
    keys = {name: _concept_named(name).key for name in memory_of}
    ids = mentions.known_keys(connection, place.namespace_id, keys.values())
    concept_of = {name: ids[key] for name, key in keys.items() if key in ids}
    for one in named:
        concept_id = concept_of.get(one.name)
        if concept_id is not None and one.entity_type:
            kind = _typed(one.entity_type)
            yield ClaimDraft(ClaimKind.KIND, concept_id, kind, ClaimedBy.CALLER, memory_id=one.id)
        if concept_id is not None and key_of(one.name) != keys[one.name]:
            yield ClaimDraft(ClaimKind.ALIAS, concept_id, one.name, ClaimedBy.CALLER, memory_id=one.id)
    # Types that differ in case or signs only are one type, stated when the first of them was.
    distinct: dict[tuple[str, str, str], int] = {}
    for relation, at in related:
        distinct.setdefault((relation.from_entity, relation.to_entity, _typed(relation.relation_type)), at)
    for (from_name, to_name, relation_type), created_us in distinct.items():
        start, end = concept_of.get(from_name), concept_of.get(to_name)
        if start is not None and end is not None and start != end:
            yield ClaimDraft(
                ClaimKind.RELATION,
                start,
                relation_type,
                ClaimedBy.CALLER,
                end,
                memory_id=memory_of[from_name],
                other_memory_id=memory_of[to_name],
                created_at=from_us(created_us),
            )


def relations_behind(
    connection: Connection, namespace_id: int, claims: Iterable[Claim]
) -> Mapping[str, Sequence[EntityRelation]]:
    """Return the relations of entities that these claims are derived from, by the source of their graph."""
    found: dict[str, list[EntityRelation]] = {}
    for claim in claims:
        if claim.memory_id is None or claim.other_memory_id is None:
            continue
        ends = relations.named_memories(connection, namespace_id, [claim.memory_id, claim.other_memory_id])
        if not {claim.memory_id, claim.other_memory_id} <= ends.keys():
            continue
        start, end = ends[claim.memory_id], ends[claim.other_memory_id]
        place = EntityGraph(namespace_id, start.source)
        stated = relations.relations(connection, place, relations.ids_of(connection, place, [start.name]))
        found.setdefault(start.source, []).extend(
            one for one in stated if one.to_entity == end.name and _typed(one.relation_type) == claim.text
        )
    return found


def _observations(text: str, named: NamedMemory) -> str:
    """Return the text of an entity without the line of its name and type, which the profile begins with."""
    first, _, rest = text.partition("\n")
    return rest if first == heading(named.name, named.entity_type) else text


def _concept_named(name: str) -> Mentioned:
    """Return the concept of an entity's name; its key is empty if the name has neither letters nor digits."""
    shown = shown_name(name)
    match mentioned(shown):
        case [only] if only.form == shown and any(map(str.isalnum, only.key)):
            return only
    key = key_of(shown)
    return Mentioned(key if any(map(str.isalnum, key)) else "", shown, ConceptKind.NAME)


def _typed(text: str) -> str:
    """Return a type in snake_case; as it is if it has too many letters for that, or none."""
    return type_name(text) or text
