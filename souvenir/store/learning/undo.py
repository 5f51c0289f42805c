"""Queries for undoing a job: its writes, and later writes that depend on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from souvenir.store.memories import reads
from souvenir.store.memories.facts import SPLIT
from souvenir.store.rows import select
from souvenir.store.sql import Connection

_OWN_LINK = "l.created_at = t.at AND l.from_id IN (SELECT id FROM touched WHERE added)"
"""Links of an apply have its time, and start at a memory that it added."""


class Newer(NamedTuple):
    """A later change that depends on a job's write. :param happened: What was done to the memory since."""

    memory_id: int
    happened: str


def added_by(connection: Connection, job_id: str) -> list[int]:
    """Return the memories that a job stored."""
    return list(
        select(
            connection,
            int,
            "SELECT DISTINCT memory_id FROM history "
            "WHERE job_id = ? AND before IS NULL AND after IS NOT NULL ORDER BY 1",
            (job_id,),
        )
    )


def archived_by(connection: Connection, job_id: str) -> set[int]:
    """Return the memories that a job archived."""
    return set(
        select(
            connection,
            int,
            "SELECT memory_id FROM history WHERE job_id = ? GROUP BY memory_id HAVING count(before) > 0",
            (job_id,),
        )
    )


def newer(connection: Connection, namespace_id: int, job_id: str) -> list[Newer]:
    """Return every later change that depends on a job's writes, by memory id."""
    return sorted(
        {*_later(connection, job_id), *_linked(connection, job_id), *_taken(connection, namespace_id, job_id)}
    )


def _later(connection: Connection, job_id: str) -> Iterator[Newer]:
    """Yield memories of the job whose last change is not the job's, and those that were erased.

    A later split changes no text and is ignored, as are changes of another job that was undone.
    """
    rows = select(
        connection,
        tuple[int, str, str, bool, bool, str | None],
        "SELECT h.memory_id, h.action, h.actor, h.job_id IS NOT DISTINCT FROM ?1, "
        "EXISTS (SELECT 1 FROM memories m WHERE m.id = h.memory_id), "
        "(SELECT job_id FROM extractions WHERE job_id = h.job_id) FROM history h "
        "WHERE h.id IN (SELECT max(id) FROM history WHERE memory_id IN "
        "(SELECT memory_id FROM history WHERE job_id = ?1) AND action <> ?2 AND (job_id IS NULL OR job_id NOT IN "
        "(SELECT job_id FROM extractions WHERE phase = 'undone')) GROUP BY memory_id)",
        (job_id, SPLIT),
    )
    for memory_id, action, actor, is_own, exists, other in rows:
        if not is_own:
            yield Newer(memory_id, f"{action} by {actor}" + (f" in job {other}" if other else ""))
        elif not exists:
            yield Newer(memory_id, "erased")


def _linked(connection: Connection, job_id: str) -> Iterator[Newer]:
    """Yield memories of the job that were linked since: added ones by any link, others by later links."""
    of_each_end = " UNION ".join(
        f"SELECT t.id, l.type FROM touched t JOIN links l ON l.{end} = t.id "
        f"WHERE (t.added OR l.created_at >= t.at) AND NOT ({_OWN_LINK})"
        for end in ("from_id", "to_id")
    )
    rows = select(
        connection,
        tuple[int, str],
        "WITH touched AS (SELECT memory_id AS id, min(at) AS at, count(*) > count(before) AS added FROM history "
        f"WHERE job_id = ? GROUP BY memory_id) {of_each_end}",
        (job_id,),
    )
    for memory_id, link_type in rows:
        yield Newer(memory_id, f"linked by {link_type}")


def _taken(connection: Connection, namespace_id: int, job_id: str) -> Iterator[Newer]:
    """Yield archived memories of the job whose key now belongs to a memory that the job did not store."""
    rows = list(
        select(
            connection,
            tuple[int, str, str],
            "SELECT id, source, key FROM memories WHERE key IS NOT NULL AND archived = 1 "
            "AND id IN (SELECT memory_id FROM history WHERE job_id = ?)",
            (job_id,),
        )
    )
    own = set(added_by(connection, job_id))
    for memory_id, source, key in rows:
        holder = reads.keyed_memory_id(connection, namespace_id, source, key)
        if holder is not None and holder not in own:
            yield Newer(memory_id, f"its key taken by memory {holder}")
