"""Queries of a scan for duplicates: candidates of one source, their vectors, and whether a found pair is unchanged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from souvenir.core.labels import DOCUMENT_KEY, DOCUMENTS, SEPARATOR
from souvenir.core.types import FloatVector
from souvenir.store.memories.reads import CONFLICTS_WITH
from souvenir.store.namespaces import Namespace, visible_condition
from souvenir.store.rows import ids_parameter, select
from souvenir.store.sql import Connection


@dataclass(frozen=True, slots=True)
class DuplicateCandidate:
    """An active memory. `updated_at`, in microseconds, identifies the state of it that the vectors belong to."""

    id: int
    updated_at: int
    pinned: bool
    passage_count: int


@dataclass(frozen=True, slots=True)
class DuplicateCandidates:
    """The candidates of one source in id order, and the parameters for reading their vectors."""

    memories: tuple[DuplicateCandidate, ...]
    model_id: str
    dim: int


def next_source(connection: Connection, namespace: Namespace, after: str | None, *, prefix: str = "") -> str | None:
    """Return the first visible source that begins with the prefix, or the next one after a source."""
    visible, parameters = visible_condition(namespace.sources)
    row = connection.execute(
        "SELECT min(source) FROM memories WHERE namespace_id = ? AND (CAST(? AS TEXT) IS NULL OR source > ?) "
        f"AND substr(source, 1, length(?)) = ? AND {visible}",
        (namespace.id, after, after, prefix, prefix, *parameters),
    ).get
    return None if row is None else str(row)


_MERGEABLE = (
    "AND m.pinned = 0 AND m.key IS NULL "
    f"AND NOT EXISTS (SELECT 1 FROM links WHERE from_id = m.id AND type = '{CONFLICTS_WITH}') "
    f"AND NOT EXISTS (SELECT 1 FROM links WHERE to_id = m.id AND type = '{CONFLICTS_WITH}')"
)

_PLACE = DOCUMENTS + SEPARATOR
_NO_DOCUMENT = f"NOT (coalesce(m.key, '') = '{DOCUMENT_KEY}' AND substr(m.source, 1, {len(_PLACE)}) = '{_PLACE}')"
"""As `souvenir.core.labels.is_document`: a document is no duplicate of another text."""


def candidates(
    connection: Connection, namespace_id: int, source: str, *, mergeable_only: bool = False
) -> DuplicateCandidates:
    """:param mergeable_only: Exclude memories that are pinned, have a key, or are part of a conflict."""
    model_id = str(connection.execute("SELECT value FROM meta WHERE key = 'model_id'").get)
    rows = list(
        select(
            connection,
            tuple[DuplicateCandidate, int],
            "SELECT m.id, m.updated_at, m.pinned, count(*), max(length(v.vector)) FROM memories m "
            "JOIN passages p ON p.kind = 'memory' AND p.owner_id = m.id AND p.fact_id IS NULL "
            "JOIN vectors v ON v.passage_id = p.id AND v.model_id = ? "
            f"WHERE m.namespace_id = ? AND m.source = ? AND m.archived = 0 AND {_NO_DOCUMENT} "
            f"{_MERGEABLE if mergeable_only else ''} "
            "GROUP BY m.id ORDER BY m.id",
            (model_id, namespace_id, source),
        )
    )
    width = rows[0][1] if rows else 0
    memories = tuple(candidate for candidate, _ in rows)
    return DuplicateCandidates(memories, model_id, width // np.dtype(np.float32).itemsize)


def mean_vectors(connection: Connection, ids: NDArray[np.int64], *, model_id: str, dim: int) -> FloatVector:
    """Return the unit mean vector of the passages of each memory's text, shape (n, dim); zeros for a deleted one.

    :param ids: Ascending.
    """
    rows = list(
        select(
            connection,
            tuple[int, bytes],
            "SELECT p.owner_id, v.vector FROM passages p JOIN vectors v ON v.passage_id = p.id AND v.model_id = ? "
            "WHERE p.kind = 'memory' AND p.fact_id IS NULL AND p.owner_id IN (SELECT value FROM json_each(?)) "
            "ORDER BY p.owner_id, p.ordinal",
            (model_id, ids_parameter(ids.tolist())),
        )
    )
    sums = np.zeros((len(ids), dim), dtype=np.float32)
    owners = np.array([owner for owner, _ in rows], dtype=np.int64)
    vectors = np.frombuffer(b"".join(vector for _, vector in rows), dtype=np.float32).reshape(-1, dim)
    found, first = np.unique(owners, return_index=True)
    if len(found):
        summed = vectors if len(found) == len(owners) else np.add.reduceat(vectors, first, axis=0)
        sums[np.searchsorted(ids, found)] = summed
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    np.divide(sums, lengths, out=sums, where=lengths > 0)
    return sums


def unchanged(
    connection: Connection, namespace_id: int, pairs: Sequence[tuple[DuplicateCandidate, DuplicateCandidate]]
) -> list[int]:
    """Return the duplicates that may be deleted: both memories of the pair are unchanged since the comparison."""
    compared = [(kept.id, kept.updated_at, found.id, found.updated_at) for kept, found in pairs]
    kept_id, kept_at, found_id, found_at = (f"CAST(pair.value ->> {number} AS BIGINT)" for number in range(4))
    return list(
        select(
            connection,
            int,
            # CROSS JOIN keeps the order: SQLite would otherwise look at every memory of the source for each pair.
            "SELECT d.id FROM json_each(?) pair "
            f"CROSS JOIN memories k ON k.id = {kept_id} AND k.updated_at = {kept_at} "
            f"CROSS JOIN memories d ON d.id = {found_id} AND d.updated_at = {found_at} "
            "WHERE k.namespace_id = ? AND d.namespace_id = k.namespace_id AND d.source = k.source "
            "AND k.archived = 0 AND d.archived = 0 AND d.pinned = 0 ORDER BY d.id",
            (json.dumps(compared), namespace_id),
        )
    )
