"""Figures of search and extraction quality: reads of feedback, missed memories, retrievals and extractions.

Reads on behalf of a caller take a `Namespace`, which limits visibility. Each function takes a connection inside a
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from souvenir.core.timestamps import to_us
from souvenir.core.types import LinkType, SourceFilter
from souvenir.store.admin.jobs import EXTRACT
from souvenir.store.memories.feedback import latest_votes
from souvenir.store.namespaces import Namespace, source_condition, visible_condition
from souvenir.store.rows import only, select
from souvenir.store.sql import Connection, SqlValue


def count_retrievals(connection: Connection, counts: Mapping[int, int], now: datetime) -> None:
    """Add to the retrievals of memories; deleted ones are left out."""
    connection.executemany(
        "INSERT INTO retrievals (memory_id, count, last_at) SELECT ?1, ?2, ?3 "
        "WHERE EXISTS (SELECT 1 FROM memories WHERE id = ?1) ON CONFLICT (memory_id) DO UPDATE SET "
        "count = retrievals.count + excluded.count, last_at = max(retrievals.last_at, excluded.last_at)",
        [(memory_id, count, to_us(now)) for memory_id, count in counts.items()],
    )


@dataclass(frozen=True, slots=True)
class FeedbackCounts:
    """Judgements, the memories that they are about, and reports of missed memories."""

    useful: int
    not_useful: int
    memories: int
    missed: int


def feedback_counts(
    connection: Connection, namespace: Namespace, since: datetime, source: SourceFilter | None
) -> FeedbackCounts:
    """Count judgements and reports from a time on, about visible memories of the source."""
    memories, parameters = _visible(namespace, source)
    where = f"namespace_id = ? AND created_at >= ? AND memory_id IN ({memories})"
    counted = only(
        connection,
        tuple[int, int, int],
        "SELECT coalesce(sum(useful), 0), coalesce(sum(1 - useful), 0), count(DISTINCT memory_id) FROM feedback "
        f"WHERE {where}",
        (namespace.id, to_us(since), *parameters),
    )
    missed = f"SELECT count(*) FROM missed_memories WHERE {where}"
    return FeedbackCounts(*counted, only(connection, int, missed, (namespace.id, to_us(since), *parameters)))


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """Active memories; `retrieved` ones were returned by a search, `dated` ones have a `document_at`."""

    active: int
    archived: int
    retrieved: int
    dated: int


def memory_counts(connection: Connection, namespace: Namespace) -> MemoryCounts:
    """Count all memories of the namespace."""
    return only(
        connection,
        MemoryCounts,
        "SELECT count(*) FILTER (WHERE archived = 0), count(*) FILTER (WHERE archived = 1), "
        "count(*) FILTER (WHERE archived = 0 AND r.memory_id IS NOT NULL), "
        "count(*) FILTER (WHERE archived = 0 AND document_at IS NOT NULL) "
        "FROM memories m LEFT JOIN retrievals r ON r.memory_id = m.id WHERE m.namespace_id = ?",
        (namespace.id,),
    )


def count_user_links(connection: Connection, namespace: Namespace) -> int:
    """Count the links of the types that callers create."""
    marks = ", ".join("?" * len(LinkType))
    return only(
        connection,
        int,
        "SELECT count(*) FROM links l JOIN memories m ON m.id = l.from_id "
        f"WHERE m.namespace_id = ? AND l.type IN ({marks})",
        (namespace.id, *(one.value for one in LinkType)),
    )


@dataclass(frozen=True, slots=True)
class ProblemQuery:
    """:param votes: Latest judgements, one for each caller and memory."""

    query: str
    votes: int
    not_useful: int
    memories: int
    last_at: datetime


def problem_queries(connection: Connection, namespace: Namespace, *, min_votes: int, limit: int) -> list[ProblemQuery]:
    """Return queries with results that were not useful, by the share of such votes, then by their number."""
    votes = latest_votes("query, memory_id, actor", "namespace_id = ? AND query <> ''")
    return list(
        select(
            connection,
            ProblemQuery,
            "SELECT query, count(*), sum(1 - useful) AS bad, count(DISTINCT memory_id), max(created_at) "
            f"FROM ({votes}) AS votes GROUP BY query HAVING count(*) >= ? AND sum(1 - useful) > 0 "
            "ORDER BY 1.0 * sum(1 - useful) / count(*) DESC, bad DESC, query LIMIT ?",
            (namespace.id, min_votes, limit),
        )
    )


@dataclass(frozen=True, slots=True)
class StaleMemory:
    """An active memory that searches return and nobody found useful."""

    id: int
    text: str
    source: str
    updated_at: datetime
    retrievals: int
    last_retrieved_at: datetime
    not_useful: int


def stale_memories(
    connection: Connection, namespace: Namespace, *, min_retrievals: int, limit: int
) -> list[StaleMemory]:
    """Return them by votes that they were not useful, then by retrievals, most first."""
    latest = latest_votes("memory_id, actor", "namespace_id = ?1")
    votes = (
        f"SELECT memory_id, sum(1 - useful) AS bad, sum(useful) AS good FROM ({latest}) AS latest GROUP BY memory_id"
    )
    return list(
        select(
            connection,
            StaleMemory,
            "SELECT m.id, m.text, m.source, m.updated_at, r.count, r.last_at, coalesce(f.bad, 0) AS bad "
            f"FROM retrievals r JOIN memories m ON m.id = r.memory_id LEFT JOIN ({votes}) f "
            "ON f.memory_id = m.id WHERE m.namespace_id = ?1 AND m.archived = 0 AND r.count >= ?2 "
            "AND coalesce(f.good, 0) = 0 ORDER BY bad DESC, r.count DESC, m.id LIMIT ?3",
            (namespace.id, min_retrievals, limit),
        )
    )


@dataclass(frozen=True, slots=True)
class Failure:
    """A judgement that a memory was not useful, a report of a missed memory, or a failed extraction.

    :param text: The query or the context. :param error: That of the extraction.
    """

    kind: str
    at: datetime
    source: str
    memory_id: int | None
    job_id: str | None
    text: str | None
    error: str | None


def retrieval_failures(connection: Connection, namespace: Namespace, *, limit: int) -> list[Failure]:
    """Return judgements that memories were not useful and reports of missed ones, newest first."""
    return list(
        select(
            connection,
            Failure,
            "SELECT f.kind, f.at, m.source, f.memory_id, NULL, f.text, NULL FROM ("
            "SELECT 'not_useful' AS kind, created_at AS at, memory_id, query AS text, id FROM feedback "
            "WHERE namespace_id = ?1 AND useful = 0 UNION ALL "
            "SELECT 'missed', created_at, memory_id, context, id FROM missed_memories WHERE namespace_id = ?1) "
            "f JOIN memories m ON m.id = f.memory_id ORDER BY f.at DESC, f.kind, f.id DESC LIMIT ?2",
            (namespace.id, limit),
        )
    )


def extraction_failures(connection: Connection, namespace: str, *, limit: int) -> list[Failure]:
    """Return failed extraction jobs, newest first."""
    return list(
        select(
            connection,
            Failure,
            "SELECT 'extraction', coalesce(j.finished_at, j.created_at) AS at, e.source, NULL, j.id, NULL, j.error "
            "FROM jobs j JOIN extractions e ON e.job_id = j.id "
            "WHERE j.kind = ? AND j.namespace = ? AND j.status = 'failed' ORDER BY at DESC, j.id LIMIT ?",
            (EXTRACT, namespace, limit),
        )
    )


@dataclass(frozen=True, slots=True)
class ExtractionCounts:
    """Extraction jobs by status, and their facts by stage and by verdict."""

    jobs: Mapping[str, int]
    facts: Mapping[str, int]
    verdicts: Mapping[str, int]


def extraction_counts(connection: Connection, namespace: str, since: datetime) -> ExtractionCounts:
    """Count the extraction jobs that were submitted from a time on and are still stored."""
    jobs = (
        "FROM jobs j JOIN extractions e ON e.job_id = j.id WHERE j.kind = ? AND j.namespace = ? AND j.created_at >= ?"
    )
    facts = jobs.replace("WHERE", "JOIN extraction_facts f ON f.job_id = j.id WHERE")
    decided = f"{facts} AND f.decision IS NOT NULL"
    parameters = (EXTRACT, namespace, to_us(since))

    def counted(what: str, query: str) -> dict[str, int]:
        return _by_name(select(connection, tuple[str, int], f"SELECT {what}, count(*) {query} GROUP BY 1", parameters))

    return ExtractionCounts(
        counted("j.status", jobs), counted("f.stage", facts), counted("f.decision ->> '$.verdict'", decided)
    )


def _by_name(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    return {name: count for name, count in rows if name is not None}


def _visible(namespace: Namespace, source: SourceFilter | None) -> tuple[str, list[SqlValue]]:
    """Return an SQL query of the ids of visible memories, and its parameters."""
    visible, parameters = visible_condition(namespace.sources)
    query = f"SELECT id FROM memories WHERE namespace_id = ? AND {visible}"
    values: list[SqlValue] = [namespace.id, *parameters]
    if source is not None:
        condition, of_source = source_condition(source)
        query, values = f"{query} AND {condition}", values + of_source
    return query, values
