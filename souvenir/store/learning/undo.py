"""Queries for undoing a job: what it wrote, and what was written on top of it since."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import apsw

from souvenir.store.memories import reads
from souvenir.store.memories.facts import SPLIT
from souvenir.store.rows import select

_OWN_LINK = "l.created_at = t.at AND l.from_id IN (SELECT id FROM touched WHERE added)"
"""Links of one apply have its time, and lead from what it added."""


class Newer(NamedTuple):
    """Something that stands on what a job wrote. :param happened: To the memory, since."""

    memory_id: int
    happened: str


def added_by(connection: apsw.Connection, job_id: str) -> list[int]:
    """The memories that a job stored."""
    return list(
        select(
            connection,
            int,
            "SELECT DISTINCT memory_id FROM history "
            "WHERE job_id = ? AND before IS NULL AND after IS NOT NULL ORDER BY 1",
            (job_id,),
        )
    )


def archived_by(connection: apsw.Connection, job_id: str) -> set[int]:
    """The memories that a job archived."""
    return set(
        select(
            connection,
            int,
            "SELECT memory_id FROM history WHERE job_id = ? GROUP BY memory_id HAVING max(before IS NOT NULL)",
            (job_id,),
        )
    )


def newer(connection: apsw.Connection, namespace_id: int, job_id: str) -> list[Newer]:
    """Everything that stands on what a job wrote, by the ids of its memories."""
    return sorted(
        {*_later(connection, job_id), *_linked(connection, job_id), *_taken(connection, namespace_id, job_id)}
    )


def _later(connection: apsw.Connection, job_id: str) -> Iterator[Newer]:
    """Memories of the job whose last change is not the job's, and those that are gone without a trace.

    That one was split says nothing new, and goes with it.
    What another job did and was undone left nothing behind.
    """
    rows = select(
        connection,
        tuple[int, str, str, bool, bool, str | None],
        "SELECT h.memory_id, h.action, h.actor, h.job_id IS ?1, EXISTS (SELECT 1 FROM memories m WHERE m.id = "
        "h.memory_id), (SELECT job_id FROM extractions WHERE job_id = h.job_id) "
        "FROM history h WHERE h.id IN (SELECT max(id) FROM history WHERE memory_id IN "
        "(SELECT memory_id FROM history WHERE job_id = ?1) AND action <> ?2 AND (job_id IS NULL OR job_id NOT IN "
        "(SELECT job_id FROM extractions WHERE phase = 'undone')) GROUP BY memory_id)",
        (job_id, SPLIT),
    )
    for memory_id, action, actor, is_own, exists, other in rows:
        if not is_own:
            yield Newer(memory_id, f"{action} by {actor}" + (f" in job {other}" if other else ""))
        elif not exists:
            yield Newer(memory_id, "erased")


def _linked(connection: apsw.Connection, job_id: str) -> Iterator[Newer]:
    """Memories of the job that somebody linked since: to what it added any link, to others those that are younger."""
    of_each_end = " UNION ".join(
        f"SELECT t.id, l.type FROM touched t JOIN links l ON l.{end} = t.id "
        f"WHERE (t.added OR l.created_at >= t.at) AND NOT ({_OWN_LINK})"
        for end in ("from_id", "to_id")
    )
    rows = select(
        connection,
        tuple[int, str],
        "WITH touched AS (SELECT memory_id AS id, min(at) AS at, max(before IS NULL) AS added FROM history "
        f"WHERE job_id = ? GROUP BY memory_id) {of_each_end}",
        (job_id,),
    )
    for memory_id, link_type in rows:
        yield Newer(memory_id, f"linked by {link_type}")


def _taken(connection: apsw.Connection, namespace_id: int, job_id: str) -> Iterator[Newer]:
    """Memories that the job archived and whose key another one has now that it did not store itself."""
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
