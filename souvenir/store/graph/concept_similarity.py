"""Similar concepts, and spellings of one concept. Each function takes a connection inside a transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from souvenir.core.stored_json import to_json
from souvenir.store.rows import CHOSEN, grouped, ids_parameter, readable, select
from souvenir.store.sql import Connection

LAST_CHARACTER = "\U0010ffff"

MAX_CONTINUED = 256
"""Maximum number of keys that continue a name."""


def following_unmatched(connection: Connection, namespace_id: int, *, limit: int) -> list[int]:
    query = "SELECT concept_id FROM unmatched WHERE namespace_id = ? ORDER BY concept_id LIMIT ?"
    return list(select(connection, int, query, (namespace_id, limit)))


def matched(connection: Connection, ids: Iterable[int]) -> None:
    connection.execute(f"DELETE FROM unmatched WHERE concept_id {CHOSEN}", (ids_parameter(ids),))


def replace(connection: Connection, found: Mapping[int, Collection[int]]) -> set[int]:
    """Replace the similar concepts of these; return the ids of all concepts that were or are similar to one."""
    chosen = ids_parameter(found)
    gone = select(connection, int, f"DELETE FROM near_concepts WHERE concept_id {CHOSEN} RETURNING other_id", (chosen,))
    touched = set(gone)
    connection.execute(f"DELETE FROM near_concepts WHERE other_id {CHOSEN}", (chosen,))
    pairs = {(one, other) for one, others in found.items() for other in others}
    query = "INSERT INTO near_concepts (concept_id, other_id) VALUES (?, ?)"
    connection.executemany(query, sorted(pairs | {(other, one) for one, other in pairs}))
    return touched | {other for _, other in pairs}


def near(connection: Connection, ids: Iterable[int]) -> dict[int, list[int]]:
    """Return the concepts similar to each of these."""
    query = f"SELECT concept_id, other_id FROM near_concepts WHERE concept_id {CHOSEN} ORDER BY concept_id, other_id"
    rows = select(connection, tuple[int, int], query, (ids_parameter(ids),))
    return grouped(rows)


def stated(connection: Connection, ids: Iterable[int]) -> dict[int, int]:
    """Return the stated alias target of each concept; callers take precedence over models, then the newest.

    A concept that is an alias of itself was stated to be no spelling of another one.
    """
    query = (
        f"SELECT concept_id, other_id FROM claims WHERE kind = 'alias' AND concept_id {CHOSEN} "
        "AND other_id IS NOT NULL ORDER BY made_by = 'caller', id"
    )
    return dict(select(connection, tuple[int, int], query, (ids_parameter(ids),)))


def keys(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    query = f"SELECT id, key FROM concepts WHERE id {CHOSEN}"
    return dict(select(connection, tuple[int, str], query, (ids_parameter(ids),)))


def all_keys(connection: Connection, namespace_id: int) -> dict[int, str]:
    query = "SELECT id, key FROM concepts WHERE namespace_id = ?"
    return dict(readable(connection, tuple[int, str], query, (namespace_id,), table="concepts"))


def by_keys(connection: Connection, namespace_id: int, keys: Iterable[str], prefix: str) -> dict[int, str]:
    """Return the concepts of these keys, and those whose key continues a prefix; an empty prefix is none."""
    query = "SELECT id, key FROM concepts WHERE namespace_id = ? AND key IN (SELECT atom FROM json_each(?))"
    found = dict(select(connection, tuple[int, str], query, (namespace_id, to_json(sorted(keys)))))
    if prefix:
        # The last code point that a key may have follows every key with the prefix.
        query = "SELECT id, key FROM concepts WHERE namespace_id = ? AND key > ? AND key < ? LIMIT ?"
        parameters = namespace_id, prefix, prefix + LAST_CHARACTER, MAX_CONTINUED
        found.update(select(connection, tuple[int, str], query, parameters))
    return found


def with_other_names(connection: Connection) -> list[int]:
    """Return the concepts that may be spellings of others, by their letters or by a claim."""
    query = (
        "SELECT concept_id FROM near_concepts "
        "UNION SELECT concept_id FROM claims WHERE kind = 'alias' AND other_id IS NOT NULL"
    )
    return list(select(connection, int, query))


def set_same(connection: Connection, concept_id: int, same: int | None) -> None:
    connection.execute("UPDATE concepts SET same_as = ? WHERE id = ?", (same, concept_id))


def spellings(connection: Connection, ids: Iterable[int]) -> list[int]:
    """Return the concepts that are another spelling of one of these."""
    return list(select(connection, int, f"SELECT id FROM concepts WHERE same_as {CHOSEN}", (ids_parameter(ids),)))


def queue_all(connection: Connection) -> None:
    """Queue every concept for matching."""
    connection.execute(
        "INSERT INTO unmatched (concept_id, namespace_id) SELECT id, namespace_id FROM concepts WHERE TRUE "
        "ON CONFLICT DO NOTHING"
    )
