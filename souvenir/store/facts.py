"""Every statement about the facts of memories, and about the memories that are to be split later.

Passages of facts are `souvenir.store.passages`' matter. Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

import apsw

from souvenir.moments import from_us, to_us
from souvenir.store.rows import ids_parameter
from souvenir.types import Fact, FactsBy, Memory

SPLIT = "split"
"""What the history says of a memory whose text was split into facts afterwards: no newer text stands on it."""


def insert(
    connection: apsw.Connection, namespace_id: int, memory_id: int, ordinal: int, text: str, by: FactsBy, now: datetime
) -> Fact:
    fact_id = connection.execute(
        "INSERT INTO facts (namespace_id, memory_id, ordinal, text, made_by, created_at) VALUES (?, ?, ?, ?, ?, ?) "
        "RETURNING id",
        (namespace_id, memory_id, ordinal, text, by.value, to_us(now)),
    ).get
    return Fact(int(fact_id), text, by, now)


def place(connection: apsw.Connection, fact_id: int, ordinal: int) -> None:
    """Let a fact stand at another place among those of its memory."""
    connection.execute("UPDATE facts SET ordinal = ? WHERE id = ?", (ordinal, fact_id))


def delete(connection: apsw.Connection, fact_ids: Iterable[int]) -> None:
    connection.execute("DELETE FROM facts WHERE id IN (SELECT value FROM json_each(?))", (ids_parameter(fact_ids),))


def with_facts(connection: apsw.Connection, found: dict[int, Memory]) -> dict[int, Memory]:
    """The memories with their facts, in their order."""
    rows: list[Any] = connection.execute(
        "SELECT memory_id, id, text, made_by, created_at FROM facts "
        "WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY memory_id, ordinal",
        (ids_parameter(found),),
    ).fetchall()
    of_each: dict[int, list[Fact]] = {}
    for memory_id, id_, text, made_by, created_at in rows:
        of_each.setdefault(memory_id, []).append(Fact(id_, text, FactsBy(made_by), from_us(created_at)))
    return {id_: replace(one, facts=tuple(of_each[id_])) if id_ in of_each else one for id_, one in found.items()}


# --- memories that are to be split later ------------------------------------------------------------------------------


def wait(connection: apsw.Connection, namespace_id: int, memory_id: int, now: datetime) -> None:
    """Note that a memory is to be split later."""
    connection.execute(
        "INSERT INTO unsplit (memory_id, namespace_id, since) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (memory_id, namespace_id, to_us(now)),
    )


def wait_no_more(connection: apsw.Connection, memory_ids: Iterable[int]) -> None:
    connection.execute(
        "DELETE FROM unsplit WHERE memory_id IN (SELECT value FROM json_each(?))", (ids_parameter(memory_ids),)
    )
