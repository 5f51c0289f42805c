"""Concepts and entities as they were at a time, in a database in memory with the tables of the store.

It gets the rows of the texts that have not changed since and those of former texts, and is read by the statements that
read the present graph. Concepts keep their ids. Rows that refer to other tables, such as messages, are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

import apsw

from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import from_us, to_us
from souvenir.core.types import Memory, RecordKind
from souvenir.store.graph import mentions, statements
from souvenir.store.graph.concept_similarity import all_keys
from souvenir.store.graph.mentions import Reading
from souvenir.store.rows import readable, select
from souvenir.store.sql import Connection, Parameters
from souvenir.store.sqlite.schema import migrate

FORMER_IDS = 2**52
"""Ids of concepts that only former texts mention begin here; the ids of the table never reach it."""

_HASH_DIGITS = 13
"""Hexadecimal digits of a key's hash that fit into such an id: 52 bits, so that it is exact in JSON."""

_MENTIONS = "concept_id, kind, owner_id, form, concept_kind, at"
_DEFINITIONS = "id, kind, owner_id, concept_id, sentence, quality, role, at, namespace_id"
_ENDS = "id, kind, message_id, sentence, terms, attribute, value, at, namespace_id"
_CLAIMS = "id, kind, concept_id, other_id, text, confidence, made_by, job_id, created_at, namespace_id, message_id"
_SIMILAR = "concept_id, other_id"

_NEIGHBOURS = (
    "CREATE VIEW neighbours (concept_id, other_id, month, owners) AS "
    "SELECT a.concept_id, b.concept_id, month_of(a.at), 1 FROM mentions a CROSS JOIN mentions b "
    "ON b.kind = a.kind AND b.owner_id = a.owner_id WHERE b.concept_id <> a.concept_id"
)
"""Instead of the table, whose rows are sums of these: only those of the requested concepts are computed."""


@contextmanager
def empty_graph() -> Iterator[Connection]:
    """Open a graph without rows, until the end of the block."""
    with closing(apsw.Connection(":memory:")) as graph:
        migrate(graph)
        graph.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        month: Any = _month_of
        graph.create_scalar_function("month_of", month, 1, deterministic=True)
        graph.execute(f"DROP TABLE neighbours; {_NEIGHBOURS}")
        with graph:
            yield graph


def _month_of(at_us: int) -> int:
    return mentions.month_of(from_us(at_us))


def former_id(key: str) -> int:
    """Return the id of a concept that no present text mentions: the same for every time, until a text mentions it."""
    return FORMER_IDS + int(mentions.key_hash(key)[:_HASH_DIGITS], 16)


def fill(
    graph: Connection,
    store: Connection,
    namespace_id: int,
    at: datetime,
    *,
    unchanged: Mapping[str, Set[int]],
    former: Sequence[Reading],
) -> list[int]:
    """Insert the mentions, definitions and ends of roles of these texts, the claims and the stored similarities.

    Claims of entities are left out.

    :param unchanged: The messages and memories, by kind, whose stored mentions are those of then.
    :param former: Analysed former texts. :return: The concepts that have no row in the store.
    """
    ids = {key: id_ for id_, key in all_keys(store, namespace_id).items()}
    new = {said.key for one in former for said in one.mentions} - ids.keys()
    new -= mentions.hidden_keys(store, namespace_id, new)
    ids |= {key: former_id(key) for key in new}

    def is_unchanged(row: tuple[Any, ...]) -> bool:
        return row[2] in unchanged[row[1]]

    source = "concepts c CROSS JOIN mentions n ON n.concept_id = c.id WHERE c.namespace_id = ?"
    shape: type[tuple[Any, ...]] = tuple[int, str, int, str, str, int]
    _copy(store, graph, shape, "mentions", _MENTIONS, source, (namespace_id,), is_unchanged)
    analysed = (
        (ids[said.key], one.kind.value, one.owner_id, said.form, said.kind.value, to_us(one.at))
        for one in former
        for said in one.mentions
        if said.key in ids
    )
    graph.executemany(f"INSERT INTO mentions ({_MENTIONS}) VALUES (?, ?, ?, ?, ?, ?)", analysed)
    mentioned = _count(graph, namespace_id, ids)
    known = {*mentioned, None}
    shape = tuple[int, str, int, int, str, int, str | None, int, int]
    source = "definitions WHERE namespace_id = ?"
    _copy(store, graph, shape, "definitions", _DEFINITIONS, source, (namespace_id,), is_unchanged)
    defined = (
        (one.kind, one.owner_id, ids[key], one.at, definition)
        for one in former
        for key, definition in one.definitions.items()
        if key in ids
    )
    statements.write_definitions(graph, namespace_id, defined)
    shape = tuple[int, str, int, str, str, str | None, str | None, int, int]
    source = "statements WHERE namespace_id = ? AND kind = 'end'"
    kept = unchanged[RecordKind.MESSAGE.value]
    _copy(store, graph, shape, "statements", _ENDS, source, (namespace_id,), lambda row: row[2] in kept)
    of_messages = (one for one in former if one.kind is RecordKind.MESSAGE)
    statements.write(graph, namespace_id, ((one.owner_id, one.at, one.statements) for one in of_messages))
    shape = tuple[int, str, int, int | None, str, float, str, str | None, int, int, int | None]
    source = "claims WHERE namespace_id = ? AND created_at <= ? AND memory_id IS NULL"
    _copy(store, graph, shape, "claims", _CLAIMS, source, (namespace_id, to_us(at)), lambda row: {*row[2:4]} <= known)
    source = "concepts c CROSS JOIN near_concepts n ON n.concept_id = c.id WHERE c.namespace_id = ?"
    shape = tuple[int, int]
    _copy(store, graph, shape, "near_concepts", _SIMILAR, source, (namespace_id,), lambda row: {*row} <= mentioned)
    return sorted(ids[key] for key in new)


def _count(graph: Connection, namespace_id: int, ids: Mapping[str, int]) -> Set[int]:
    """Insert the mentioned concepts, with all that is counted for them; return their ids."""
    query = "SELECT concept_id, count(*) FROM mentions GROUP BY concept_id"
    owners = dict(select(graph, tuple[int, int], query))
    graph.executemany(
        "INSERT INTO concepts (id, namespace_id, key, owners) VALUES (?, ?, ?, ?)",
        [(id_, namespace_id, key, owners[id_]) for key, id_ in ids.items() if id_ in owners],
    )
    graph.execute(
        "INSERT INTO concept_forms (concept_id, form, kind, owners) "
        "SELECT concept_id, form, concept_kind, count(*) FROM mentions GROUP BY concept_id, form, concept_kind"
    )
    graph.execute(
        "INSERT INTO graphs (namespace_id, owners) "
        "SELECT ?, count(*) FROM (SELECT DISTINCT kind, owner_id FROM mentions)",
        (namespace_id,),
    )
    return owners.keys()


def _copy(
    store: Connection,
    graph: Connection,
    shape: type[tuple[Any, ...]],
    table: str,
    columns: str,
    source: str,
    parameters: Parameters,
    is_kept: Callable[[tuple[Any, ...]], bool],
) -> None:
    """Copy the readable rows of a table that are kept."""
    rows = readable(store, shape, f"SELECT {columns} FROM {source}", parameters, table=table)
    marks = ", ".join("?" for _ in columns.split(","))
    graph.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", [row for row in rows if is_kept(row)])


def insert_entities(
    graph: Connection, namespace_id: int, entities: Sequence[Memory], links: Iterable[tuple[int, int, str, int]]
) -> None:
    """Insert the memories of the knowledge graph with their facts, and their relations."""
    graph.executemany(
        "INSERT INTO memories (id, namespace_id, text, source, key, metadata, created_at, updated_at, pinned, "
        "archived) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(one.id, namespace_id, one.text, one.source, one.key, to_json(dict(one.metadata))),
                *(to_us(one.created_at), to_us(one.updated_at), one.pinned, one.archived),
            )
            for one in entities
        ],
    )
    graph.executemany(
        "INSERT INTO facts (namespace_id, memory_id, ordinal, text, made_by, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (namespace_id, one.id, ordinal, fact.text, fact.made_by.value, to_us(fact.created_at))
            for one in entities
            for ordinal, fact in enumerate(one.facts)
        ],
    )
    query = "INSERT INTO links (from_id, to_id, type, created_at) VALUES (?, ?, ?, ?)"
    graph.executemany(query, list(links))
