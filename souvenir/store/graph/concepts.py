"""Reads of concepts: roots and spellings, names, counts and neighbours.

A concept that is another spelling is shown as its root: its forms are further names of the root, and its counts are
added to it. Values computed from counts are in `souvenir.knowledge.concept_ranking`. Each function takes a connection
inside a transaction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from souvenir.core.concept_kinds import kind_of
from souvenir.core.ended_roles import causes_of, end_of
from souvenir.core.timestamps import from_us
from souvenir.core.types import ClaimKind, ConceptKind, RecordKind
from souvenir.core.types.statements import DESCRIBING_QUALITY
from souvenir.store.graph.statements import StoredDefinition, best_definitions, ends
from souvenir.store.privacy import Hidden
from souvenir.store.rows import CHOSEN, grouped, ids_parameter, readable, select
from souvenir.store.sql import Connection

MAX_ALIASES = 20
"""Limit per concept; stated aliases come first, then the most used forms."""


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept mentioned in an agent's messages and memories, with all of its spellings.

    :param id: Of the root. :param key: Its normal form. :param name: The stated name, else its most used form.
    :param kind: A `ConceptKind`, or the stated kind. :param confidence: The probability of the kind; 1 if stated.
    :param owners: Number of messages and memories that mention it. :param aliases: Other names, stated ones first.
    :param description: The stated description, else the sentence of a text that defines it best.
    :param role: Its role by that sentence, such as "your boss".
    :param stated: Which of name, description and kind were stated. :param stated_aliases: All of the stated aliases.
    """

    id: int
    key: str
    name: str
    kind: str
    confidence: float
    owners: int
    aliases: tuple[str, ...]
    description: str | None
    role: str | None
    first_at: datetime | None
    last_at: datetime | None
    stated: tuple[str, ...]
    stated_aliases: tuple[str, ...]


class _Stated(NamedTuple):
    """Sorts by precedence: a caller's claim before an entity's, both before a model's, then the newest."""

    by_model: int
    by_entity: int
    age: int
    kind: str
    text: str


class _Member(NamedTuple):
    id: int
    key: str
    owners: int


# --- roots and spellings -------------------------------------------------------------------------------------------


def roots(connection: Connection, ids: Iterable[int]) -> dict[int, int]:
    """Return the root of each of these concepts that exist."""
    query = f"SELECT id, coalesce(same_as, id) FROM concepts WHERE id {CHOSEN}"
    return dict(select(connection, tuple[int, int], query, (ids_parameter(ids),)))


def members(connection: Connection, root: int) -> list[int]:
    """Return a root and its other spellings, the root first."""
    rows = select(connection, int, "SELECT id FROM concepts WHERE same_as = ? ORDER BY id", (root,))
    return [root, *rows]


def spellings(connection: Connection, root_ids: Iterable[int]) -> dict[int, int]:
    """Return the roots and their other spellings, each with its root."""
    found = _members(connection, root_ids)
    return {one.id: root for root, of_root in found.items() for one in of_root}


def _members(connection: Connection, root_ids: Iterable[int]) -> dict[int, list[_Member]]:
    """Return the spellings of each root that exists, the root first."""
    chosen = ids_parameter(root_ids)
    query = (
        f"SELECT id, id, id, key, owners FROM concepts WHERE id {CHOSEN} "
        f"UNION ALL SELECT id, same_as, id, key, owners FROM concepts WHERE same_as {CHOSEN}"
    )
    rows = readable(connection, tuple[int, int, _Member], query, (chosen, chosen), table="concepts")
    found = grouped((root, member) for _, root, member in rows)
    ordered = {root: sorted(of_root, key=lambda one: (one.id != root, one.id)) for root, of_root in found.items()}
    # The spellings of a root that cannot be read are left out with it.
    return {root: of_root for root, of_root in ordered.items() if of_root[0].id == root}


# --- concepts with all of their spellings --------------------------------------------------------------------------


def by_ids(connection: Connection, namespace_id: int, ids: Iterable[int], hidden: Hidden) -> dict[int, Concept]:
    """Return the namespace's concepts among these ids, each as its root, by the given ids; none that is unreadable.

    :param hidden: Texts that no description and no role is taken from.
    """
    query = f"SELECT id, coalesce(same_as, id) FROM concepts WHERE id {CHOSEN} AND +namespace_id = ?"
    rows = select(connection, tuple[int, int], query, (ids_parameter(ids), namespace_id))
    root_of = dict(rows)
    of_root = _members(connection, set(root_of.values()))
    defined = _defined(connection, namespace_id, of_root, hidden)
    known = _Known.of(connection, [one.id for of_one in of_root.values() for one in of_one], defined, hidden)
    shown = {root: known.concept(of_one, _owners(connection, of_one)) for root, of_one in of_root.items()}
    return {id_: shown[root] for id_, root in root_of.items() if root in shown}


def _owners(connection: Connection, spelled: Sequence[_Member]) -> int:
    """Count the messages and memories that mention one of these spellings, each once."""
    if len(spelled) == 1:
        return spelled[0].owners
    query = f"SELECT count(*) FROM (SELECT DISTINCT kind, owner_id FROM mentions WHERE concept_id {CHOSEN}) d"
    counted = connection.execute(query, (ids_parameter(one.id for one in spelled),)).get
    return int(counted)


def _defined(
    connection: Connection, namespace_id: int, of_root: Mapping[int, Sequence[_Member]], hidden: Hidden
) -> dict[int, StoredDefinition]:
    """Return the best definition of each spelling, without the roles that have ended."""
    keys = {one.id: {member.key for member in of_one} for of_one in of_root.values() for one in of_one}
    found = best_definitions(connection, keys, hidden)
    since = min((one.at for one in found.values() if one.role and causes_of(one.role)), default=None)
    if since is None:
        return found
    ended = ends(connection, namespace_id, since, hidden)

    def end(id_: int, one: StoredDefinition) -> datetime | None:
        return end_of(one.role, one.at, keys[id_], ended) if one.role else None

    over = {id_: at for id_, one in found.items() if (at := end(id_, one)) is not None}
    later = best_definitions(connection, over, hidden, over) if over else {}
    holding = {id_: one for id_, one in later.items() if end(id_, one) is None}
    # What ended still tells the kind.
    return found | {id_: holding.get(id_, found[id_]._replace(role=None, quality=0)) for id_ in over}


@dataclass(frozen=True, slots=True)
class _Known:
    """Forms, kinds, claims and times of some concepts, by id."""

    forms: Mapping[int, Counter[str]]
    kinds: Mapping[int, Counter[ConceptKind]]
    stated: Mapping[int, Sequence[_Stated]]
    times: Mapping[int, tuple[int, int]]
    defined: Mapping[int, StoredDefinition]

    @classmethod
    def of(
        cls, connection: Connection, ids: Sequence[int], defined: Mapping[int, StoredDefinition], hidden: Hidden
    ) -> _Known:
        chosen = ids_parameter(ids)
        forms: defaultdict[int, Counter[str]] = defaultdict(Counter)
        kinds: defaultdict[int, Counter[ConceptKind]] = defaultdict(Counter)
        rows = readable(
            connection,
            tuple[int, str, ConceptKind, int],
            # Dates and quantities were concepts, and are until their texts have been read again.
            "SELECT concept_id, form, CASE WHEN kind IN ('date', 'quantity') THEN 'phrase' ELSE kind END, owners "
            f"FROM concept_forms WHERE concept_id {CHOSEN}",
            (chosen,),
            table="concept_forms",
        )
        for id_, form, kind, owners in rows:
            forms[id_][form] += owners
            kinds[id_][kind] += owners
        query = (
            "SELECT value, (SELECT min(at) FROM mentions WHERE concept_id = value), "
            "(SELECT max(at) FROM mentions WHERE concept_id = value) FROM json_each(?)"
        )
        spans = select(connection, tuple[int, int | None, int | None], query, (chosen,))
        times = {id_: (first, last) for id_, first, last in spans if first is not None and last is not None}
        stated = _stated(connection, chosen, hidden)
        return cls(forms, kinds, stated, times, defined)

    def concept(self, of_root: Sequence[_Member], owners: int) -> Concept:
        root = of_root[0]
        stated = sorted(claim for one in of_root for claim in self.stated.get(one.id, ()))
        said = {claim.kind: claim.text for claim in reversed(stated)}
        stated_aliases = dict.fromkeys(claim.text for claim in stated if claim.kind == ClaimKind.ALIAS)
        name = said.get("name") or next(iter(_by_use(self.forms.get(root.id, Counter()))), root.key)
        # Each name once, ignoring case.
        others: dict[str, str] = {}
        written = sum((self.forms.get(one.id, Counter()) for one in of_root), Counter[str]())
        for alias in (*stated_aliases, *_by_use(written)):
            others.setdefault(alias.casefold(), alias)
        others.pop(name.casefold(), None)
        kinds = sum((self.kinds.get(one.id, Counter()) for one in of_root), Counter[ConceptKind]())
        times = [self.times[one.id] for one in of_root if one.id in self.times]
        defined = [self.defined[one.id] for one in of_root if one.id in self.defined]
        definition = max(defined, key=lambda one: (one.quality, one.at), default=None)
        found, confidence = kind_of(kinds, definition.concept_kind if definition else None)
        describes = definition is not None and definition.quality >= DESCRIBING_QUALITY
        return Concept(
            id=root.id,
            key=root.key,
            name=name,
            kind=said.get("kind") or found,
            confidence=1.0 if said.get("kind") else confidence,
            owners=owners,
            aliases=tuple(others.values())[:MAX_ALIASES],
            description=said.get("description") or (definition.sentence if definition and describes else None),
            role=definition and definition.role,
            first_at=from_us(min(first for first, _ in times)) if times else None,
            last_at=from_us(max(last for _, last in times)) if times else None,
            stated=tuple(sorted(said.keys() - {ClaimKind.ALIAS})),
            stated_aliases=tuple(stated_aliases),
        )


def _stated(connection: Connection, chosen: str, hidden: Hidden) -> dict[int, list[_Stated]]:
    """Return the claims about each concept; an alias claim belongs to the concept that it is an alias of."""
    shown, parameters = hidden.no_claim("claims")
    query = (
        "SELECT id, concept_id, made_by = 'model', memory_id IS NOT NULL, -id, kind, text FROM claims "
        f"WHERE concept_id {CHOSEN} "
        f"AND kind <> 'relation' AND NOT (kind = 'alias' AND other_id IS NOT NULL){shown} "
        "UNION ALL SELECT id, other_id, made_by = 'model', memory_id IS NOT NULL, -id, kind, text FROM claims "
        f"WHERE other_id {CHOSEN} AND kind = 'alias'"
    )
    rows = readable(connection, tuple[int, int, _Stated], query, (chosen, *parameters, chosen), table="claims")
    return grouped((id_, claim) for _, id_, claim in rows)


def _by_use(counted: Counter[str]) -> list[str]:
    return sorted(counted, key=lambda text: (-counted[text], text))


# --- counts --------------------------------------------------------------------------------------------------------


def count(connection: Connection, namespace_id: int) -> int:
    """Count the concepts without further spellings."""
    counted = connection.execute("SELECT count(*) FROM concepts WHERE namespace_id = ?", (namespace_id,)).get
    query = "SELECT count(*) FROM concepts INDEXED BY concepts_by_same WHERE same_as IS NOT NULL AND namespace_id = ?"
    other = connection.execute(query, (namespace_id,)).get
    return int(counted) - int(other)


def owners_read(connection: Connection, namespace_id: int) -> int:
    """Count the messages and memories that mention anything."""
    return int(connection.execute("SELECT owners FROM graphs WHERE namespace_id = ?", (namespace_id,)).get or 0)


def most_used(connection: Connection, namespace_id: int, *, limit: int) -> dict[int, int]:
    """Return mention counts of the most mentioned roots without other spellings, and of all roots with some."""
    query = (
        "SELECT id, owners FROM concepts WHERE namespace_id = ? AND same_as IS NULL ORDER BY owners DESC, id DESC "
        "LIMIT ?"
    )
    rows = select(connection, tuple[int, int], query, (namespace_id, limit))
    found = dict(rows)
    others = select(
        connection,
        tuple[int, int],
        "SELECT s.same_as, sum(s.owners) + max(r.owners) FROM concepts s INDEXED BY concepts_by_same "
        "CROSS JOIN concepts r ON r.id = s.same_as WHERE s.same_as IS NOT NULL AND s.namespace_id = ? "
        "GROUP BY s.same_as",
        (namespace_id,),
    )
    return found | dict(others)


def owners_of(connection: Connection, root_ids: Iterable[int]) -> dict[int, int]:
    """Return how many messages and memories mention each root, in all spellings."""
    query = (
        "SELECT id, owners + coalesce((SELECT sum(owners) FROM concepts s WHERE s.same_as = c.id), 0) "
        f"FROM concepts c WHERE id {CHOSEN}"
    )
    return dict(select(connection, tuple[int, int], query, (ids_parameter(root_ids),)))


def together(connection: Connection, ids: Iterable[int], *, limit: int) -> dict[int, dict[int, int]]:
    """Return monthly counts of the concepts that co-occur with one of these; spellings are not merged.

    :param limit: Only the most frequent ones.
    """
    chosen = ids_parameter(ids)
    query = (
        f"SELECT other_id, month, owners FROM neighbours WHERE concept_id {CHOSEN} AND other_id IN (SELECT other_id "
        f"FROM neighbours WHERE concept_id {CHOSEN} GROUP BY other_id ORDER BY sum(owners) DESC, other_id LIMIT ?)"
    )
    rows = select(connection, tuple[int, int, int], query, (chosen, chosen, limit))
    found: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for other, month, owners in rows:
        found[other][month] += owners
    return {other: dict(months) for other, months in found.items()}


# --- mentions and claims -------------------------------------------------------------------------------------------


def mentions_of(
    connection: Connection, ids: Iterable[int], hidden: Hidden, *, limit: int
) -> dict[RecordKind, list[int]]:
    """Return the latest messages and memories that mention one of these, newest first, by kind; no hidden ones."""
    shown, parameters = hidden.no_owner("n")
    query = (
        f"SELECT concept_id, kind, owner_id, at FROM mentions n WHERE concept_id = ?{shown} ORDER BY at DESC LIMIT ?"
    )
    times: dict[tuple[RecordKind, int], datetime] = {}
    for id_ in ids:
        rows = readable(
            connection, tuple[int, RecordKind, int, datetime], query, (id_, *parameters, limit), table="mentions"
        )
        times |= {(kind, owner_id): at for _, kind, owner_id, at in rows}
    latest = sorted(times, key=lambda one: (times[one], one[1]), reverse=True)[:limit]
    return {kind: [owner_id for of_kind, owner_id in latest if of_kind is kind] for kind in RecordKind}


def only_in_hidden(connection: Connection, ids: Iterable[int], hidden: Hidden) -> set[int]:
    """Return those of these concepts, each in its own spelling, that no other than hidden texts mention."""
    shown, parameters = hidden.no_owner("n")
    if not shown:
        return set()
    query = (
        f"SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM mentions n WHERE n.concept_id = value{shown})"
    )
    return set(select(connection, int, query, (ids_parameter(ids), *parameters)))


def uses_by_people(connection: Connection, root_ids: Iterable[int], *, limit: int) -> Counter[int]:
    """Count the claims, memories and messages, other than those of the assistant, that mention each root.

    :param limit: Counts up to this for each spelling.
    """
    root_of = spellings(connection, root_ids)
    rows = select(
        connection,
        tuple[int, int, int],
        "SELECT value, (SELECT count(*) FROM claims WHERE concept_id = value), (SELECT count(*) FROM (SELECT 1 FROM "
        "mentions n LEFT JOIN messages m ON n.kind = 'message' AND m.id = n.owner_id WHERE n.concept_id = value "
        "AND coalesce(m.role, '') <> 'assistant' LIMIT ?) u) FROM json_each(?)",
        (limit, ids_parameter(root_of)),
    )
    found = Counter[int]()
    for id_, claims, mentions in rows:
        found[root_of[id_]] += claims + mentions
    return found


def stated_names(connection: Connection, namespace_id: int) -> Iterator[tuple[str, int]]:
    """Yield valid stated names and aliases with their concepts; callers take precedence over models."""
    query = (
        "SELECT id, kind, text, CASE kind WHEN 'alias' THEN coalesce(other_id, concept_id) ELSE concept_id END "
        "FROM claims WHERE namespace_id = ? AND kind IN ('name', 'alias') ORDER BY made_by = 'caller' DESC, "
        "memory_id IS NOT NULL, id DESC"
    )
    rows = readable(connection, tuple[int, str, str, int], query, (namespace_id,), table="claims")
    named: set[int] = set()
    for _, kind, text, concept_id in rows:
        # Of several names of a concept the first one is valid.
        if kind == ClaimKind.ALIAS or concept_id not in named:
            yield text, concept_id
        if kind == ClaimKind.NAME:
            named.add(concept_id)
