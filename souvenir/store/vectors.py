"""Vectors of another model, the next or the previous one: written and deleted in small batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from souvenir.core.passages import LATE_PROFILES, Embeddable, Passage, TokenCodes
from souvenir.store import meta
from souvenir.store.rows import PASSAGE_COLUMNS, ids_parameter, only, readable, select
from souvenir.store.sql import Connection, SqlValue

MODEL = "model_id"
"""The key in `meta` of the model whose vectors are searched."""

MODEL_SPEC = "model_spec"
"""The key of the configuration, as JSON, from which that model is created again; absent if it was never stored."""

TOKEN_SPACE = "token_space"
"""The key of the token space of the current model in which every passage of `LATE_PROFILES` has its token vectors;
absent while some may be missing."""

OTHER_MODEL = "other_model_id"
"""The key of another model that may have vectors: the next one during re-embedding, the previous one until cleanup."""

NEXT_MODEL = "next_model"
"""The key of the announcement of the model that is about to replace the current one, while every process should embed
with it too."""

ANNOUNCED = "announced_model"
"""The key of the announcement of the current model, if it replaced another one."""


class NextModel(NamedTuple):
    """A model that may replace the current one.

    :param announcement: What the other processes know of it: a text that no other change has.
    """

    id: str
    announcement: str


def missing(connection: Connection, model_id: str, *, after: int, limit: int) -> list[tuple[int, Embeddable]]:
    """Return the next passages after an id without a vector of the model: ids in order, and what to embed."""
    lacks = "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage_id = p.id AND v.model_id = ?)"
    found = _following(connection, lacks, (model_id,), after=after, limit=limit)
    return [(passage.id, passage.embeddable) for _, passage in found]


def without_tokens(
    connection: Connection, model_id: str, space: str, *, after: int, limit: int
) -> list[tuple[int, Passage]]:
    """Return the next passages after an id that lack token vectors of a space, with the ids of their namespaces."""
    lacks = (
        "profile IN (SELECT value FROM json_each(?)) AND EXISTS (SELECT 1 FROM vectors v WHERE v.passage_id = p.id "
        "AND v.model_id = ? AND (v.tokens IS NULL OR substr(v.tokens, 1, 4) <> ?))"
    )
    parameters = (ids_parameter(LATE_PROFILES), model_id, bytes.fromhex(space))
    return _following(connection, lacks, parameters, after=after, limit=limit)


def _following(
    connection: Connection, condition: str, parameters: Sequence[SqlValue], *, after: int, limit: int
) -> list[tuple[int, Passage]]:
    """Return passages that fulfil a condition; of unreadable ones, which are left out, any number may precede them."""
    query = f"SELECT id FROM passages p WHERE id > ? AND {condition} ORDER BY id LIMIT ?"
    while ids := list(select(connection, int, query, (after, *parameters, limit))):
        if found := passages(connection, ids):
            return found
        after = ids[-1]
    return []


def add_tokens(connection: Connection, model_id: str, tokens: Mapping[int, TokenCodes]) -> None:
    """Store token vectors by passage id; passages that were deleted meanwhile are skipped."""
    connection.executemany(
        "UPDATE vectors SET tokens = ? WHERE passage_id = ? AND model_id = ?",
        [(codes.to_bytes(), passage_id, model_id) for passage_id, codes in tokens.items()],
    )


def passages(connection: Connection, ids: Iterable[int]) -> list[tuple[int, Passage]]:
    """Return those of the passages that can be read, with the ids of their namespaces."""
    rows = readable(
        connection,
        tuple[int, int, Passage],
        f"SELECT id, namespace_id, {PASSAGE_COLUMNS} FROM passages "
        "WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (ids_parameter(ids),),
        table="passages",
    )
    return [(namespace_id, passage) for _, namespace_id, passage in rows]


def count_passages(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM passages").get)


def remove_others(connection: Connection, *, after: int, limit: int) -> int | None:
    """Delete a batch of vectors of unused models, after a passage id; return the last id, or None at the end."""
    last = connection.execute(
        "SELECT max(passage_id) FROM (SELECT DISTINCT passage_id FROM vectors WHERE passage_id > ? "
        f"AND model_id <> ({_PRESENT}) ORDER BY passage_id LIMIT ?)",
        (after, limit),
    ).get
    if last is not None:
        connection.execute(
            f"DELETE FROM vectors WHERE passage_id > ? AND passage_id <= ? AND model_id <> ({_PRESENT})", (after, last)
        )
    return None if last is None else int(last)


_PRESENT = f"SELECT value FROM meta WHERE key = '{MODEL}'"


def other_model(connection: Connection) -> str | None:
    """Return the id of another model that may have vectors, in addition to the current one."""
    return meta.get(connection, OTHER_MODEL)


def forget_other(connection: Connection) -> None:
    """Record that no other model has vectors or is about to have some."""
    meta.forget(connection, OTHER_MODEL)
    meta.forget(connection, NEXT_MODEL)


def replace_model(connection: Connection, model_id: str, spec: str) -> None:
    """Let searches use the vectors of another model; those of the former one are to be removed.

    :param spec: The configuration from which the new model is created again.
    """
    former = only(connection, str, "SELECT value FROM meta WHERE key = ?", (MODEL,))
    for key, value in ((MODEL, model_id), (MODEL_SPEC, spec), (OTHER_MODEL, former)):
        meta.put(connection, key, value)
    meta.put(connection, ANNOUNCED, meta.get(connection, NEXT_MODEL) or "")
    meta.forget(connection, NEXT_MODEL)


def replicas(connection: Connection) -> int:
    """Return the number of processes that share the database; 0 for a file."""
    return int(connection.execute("SELECT count(*) FROM replicas").get)


def last_id(connection: Connection) -> int:
    """Return the greatest id of a passage; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM passages").get)


def remove_all_others(connection: Connection) -> None:
    """Delete the vectors of all other models from a database that is not in use yet."""
    connection.execute(f"DELETE FROM vectors WHERE model_id <> ({_PRESENT})")
    forget_other(connection)
