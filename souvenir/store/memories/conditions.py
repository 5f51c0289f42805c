"""Conditions on memories, as trees, and the one SQL condition that each becomes on both engines.

A test of something that a memory does not have is false, never unknown, so `Not` is exact. Numbers in metadata are
compared as doubles, texts by their code points. Other kinds of values are equal to none of these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from souvenir.core.stored_json import to_json
from souvenir.store.memories.reads import tag_condition
from souvenir.store.namespaces import Namespace, visible_condition
from souvenir.store.pending_removals import HIDDEN
from souvenir.store.rows import first, ids_parameter, select
from souvenir.store.sql import Connection, SqlValue

Scalar = str | bool | int | float


class Compares(StrEnum):
    """How a test compares; the order of texts and numbers is for values of the same kind only."""

    EXISTS = "exists"
    IN = "in"
    LT = "<"
    LTE = "<="
    GT = ">"
    GTE = ">="
    CONTAINS = "contains"
    ICONTAINS = "icontains"


class Column(StrEnum):
    """A text or a time of a memory, as SQL. Times are in microseconds."""

    TEXT = "text"
    OCCURRED_AT = "coalesce(document_at, created_at)"
    UPDATED_AT = "updated_at"
    ID = "id"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Metadata:
    """The value at a path of names; a name does not begin with `$` or `[`, and has no quote or backslash."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceBelow:
    """The rest of the source after a prefix; memories whose source has another prefix have no value."""

    prefix: str


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags; those of `IN` ignore case, and there is no order."""


@dataclass(frozen=True, slots=True)
class Test:
    """:param values: Of `IN` any number, of `EXISTS` none, of the others one."""

    field: Metadata | Column | SourceBelow | Tags
    compares: Compares
    values: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition


Condition: TypeAlias = Test | Every | Some | Not
Sql = tuple[str, list[SqlValue]]

ALWAYS, NEVER = Every(), Some()

_DOCUMENT = "(CASE WHEN json_valid(metadata) THEN metadata ELSE '{}' END)"
_IS_TEXT = "{0}.type IN ('text', 'string')"
_IS_NUMBER = "{0}.type IN ('integer', 'real', 'number') AND length(CAST({0}.atom AS TEXT)) <= 300"
"""A longer number does not fit a double, which PostgreSQL refuses."""

_ORDERS = frozenset({Compares.LT, Compares.LTE, Compares.GT, Compares.GTE})


def sql_of(condition: Condition, namespace_id: int) -> Sql:
    """Return the condition on rows of `memories`, and its parameters."""
    match condition:
        case Test():
            return _test(condition, namespace_id)
        case Not(part):
            text, values = sql_of(part, namespace_id)
            return f"NOT ({text})", values
        case Every(parts):
            return _joined(parts, namespace_id, " AND ", "TRUE")
        case Some(parts):
            return _joined(parts, namespace_id, " OR ", "FALSE")


def _joined(parts: Sequence[Condition], namespace_id: int, word: str, empty: str) -> Sql:
    found = [sql_of(part, namespace_id) for part in parts]
    text = word.join(f"({text})" for text, _ in found) or empty
    return text, [value for _, values in found for value in values]


def _test(test: Test, namespace_id: int) -> Sql:
    match test.field:
        case Metadata(path):
            return _metadata(path, test)
        case SourceBelow(prefix):
            below, values = _of_text("substr(source, length(?) + 1)", test)
            given = [] if test.compares is Compares.EXISTS else [prefix]
            return f"substr(source, 1, length(?)) = ? AND {below}", [prefix, prefix, *given, *values]
        case Tags():
            if test.compares is Compares.EXISTS:
                return "id IN (SELECT memory_id FROM memory_tags WHERE namespace_id = ?)", [namespace_id]
            return tag_condition(namespace_id, map(str, test.values), all_tags=False)
        case Column.TEXT:
            return _of_text("text", test)
        case column:
            if test.compares is Compares.IN:
                numbers = [int(value) for value in test.values]
                return f"{column} IN (SELECT value FROM json_each(?))", [ids_parameter(numbers)]
            return f"{column} {test.compares} ?", [int(test.values[0])]


def _of_text(column: str, test: Test) -> Sql:
    """:param column: A text that is never NULL."""
    match test.compares:
        case Compares.EXISTS:
            return "TRUE", []
        case Compares.IN:
            return f"{column} IN (SELECT atom FROM json_each(?))", [to_json(list(map(str, test.values)))]
        case Compares.ICONTAINS:
            return f"instr(lower({column}), lower(?)) > 0", [str(test.values[0])]
        case _:
            return f"instr({column}, ?) > 0", [str(test.values[0])]


def _metadata(path: Sequence[str], test: Test) -> Sql:
    """Each name is looked up in the value of the one before it, which is wrapped as the only element of an array."""
    tables: list[str] = []
    parameters: list[SqlValue] = []
    inside = ""
    for depth, name in enumerate(path):
        within = f"v{depth - 1}"
        object_of = f"CASE WHEN {within}.type = 'object' THEN {within}.value -> CAST(? AS TEXT) END"
        inside = f"({object_of if depth else f'{_DOCUMENT} -> CAST(? AS TEXT)'})"
        tables.append(f"json_each('[' || {inside} || ']') v{depth}")
        parameters.append(name)
    last = f"v{len(path) - 1}"
    text, values = _element(last, test)
    if test.compares in (Compares.CONTAINS, Compares.ICONTAINS):
        held, of_held = _element("i", Test(test.field, Compares.IN, test.values))
        text = (
            f"{text} OR EXISTS (SELECT 1 FROM json_each(CASE WHEN {last}.type = 'array' THEN {inside} END) i "
            f"WHERE {held})"
        )
        values = [*values, path[-1], *of_held]
    return f"EXISTS (SELECT 1 FROM {', '.join(tables)} WHERE {text})", [*parameters, *values]


def _element(alias: str, test: Test) -> Sql:
    """Return the condition on an element of `json_each`."""
    is_text, is_number = _IS_TEXT.format(alias), _IS_NUMBER.format(alias)
    if test.compares is Compares.EXISTS:
        return f"{alias}.type <> 'null'", []
    if test.compares is Compares.IN:
        numbers = [value for value in test.values if not isinstance(value, str | bool)]
        others = [value for value in test.values if isinstance(value, str | bool)]
        return (
            f"({alias}.type, {alias}.atom) IN (SELECT w.type, w.atom FROM json_each(?) w) OR "
            f"CASE WHEN {is_number} THEN CAST({alias}.atom AS DOUBLE PRECISION) IN "
            "(SELECT CAST(w.atom AS DOUBLE PRECISION) FROM json_each(?) w) ELSE FALSE END",
            [to_json(others), json.dumps(numbers)],
        )
    [value] = test.values
    if test.compares in _ORDERS:
        if isinstance(value, str):
            return (
                f"CASE WHEN {is_text} THEN CAST({alias}.atom AS BLOB) {test.compares} ? ELSE FALSE END",
                [value.encode()],
            )
        return (
            f"CASE WHEN {is_number} THEN CAST({alias}.atom AS DOUBLE PRECISION) {test.compares} "
            "CAST(? AS DOUBLE PRECISION) ELSE FALSE END",
            [float(value)],
        )
    if not isinstance(value, str):
        return "FALSE", []
    text, values = _of_text(f"{alias}.atom", test)
    return f"CASE WHEN {is_text} THEN {text} ELSE FALSE END", values


# --- what conditions are about ---------------------------------------------------------------------------------------


def matching_ids(connection: Connection, namespace: Namespace, condition: Condition) -> list[int]:
    """Return the ids of the visible memories that meet the condition, ascending."""
    visible, parameters = visible_condition(namespace.sources)
    text, values = sql_of(condition, namespace.id)
    query = f"SELECT json_group_array(id) FROM memories WHERE namespace_id = ? AND {visible} AND ({text})"
    return sorted(json.loads(connection.execute(query, [namespace.id, *parameters, *values]).get))


_NOT_HIDDEN = "substr(name, 1, length(?)) <> ?"
"""True of a namespace that is not being removed; its parameters are `HIDDEN`, twice."""


def namespace_of(connection: Connection, memory_id: int) -> str | None:
    """Return the name of the namespace that a memory is or was in; None if there is none that is not being removed."""
    return first(
        connection,
        str,
        "SELECT name FROM namespaces WHERE id = coalesce((SELECT namespace_id FROM memories WHERE id = ?), "
        f"(SELECT max(namespace_id) FROM history WHERE memory_id = ?)) AND {_NOT_HIDDEN}",
        (memory_id, memory_id, HIDDEN, HIDDEN),
    )


def first_namespaces(connection: Connection, limit: int) -> list[str]:
    """Return the names of the first namespaces that are not being removed, in the order of their creation."""
    query = f"SELECT name FROM namespaces WHERE {_NOT_HIDDEN} ORDER BY id LIMIT ?"
    return list(select(connection, str, query, (HIDDEN, HIDDEN, limit)))


@dataclass(frozen=True, slots=True)
class Held:
    """A value that memories hold: their number, the time of the first, and of the last change of one."""

    value: str
    count: int
    since: int
    until: int


def texts_held(connection: Connection, namespace: Namespace, name: str) -> list[Held]:
    """Return the texts at a name of the metadata of visible memories."""
    visible, parameters = visible_condition(namespace.sources)
    return list(
        select(
            connection,
            Held,
            "SELECT v.atom, count(*), min(created_at), max(updated_at) FROM memories, "
            f"json_each('[' || ({_DOCUMENT} -> CAST(? AS TEXT)) || ']') v "
            f"WHERE namespace_id = ? AND {visible} AND {_IS_TEXT.format('v')} GROUP BY v.atom ORDER BY v.atom",
            (name, namespace.id, *parameters),
        )
    )


def sources_held(connection: Connection, namespace: Namespace, prefix: str) -> list[Held]:
    """Return what follows a prefix in the sources of visible memories."""
    visible, parameters = visible_condition(namespace.sources)
    return list(
        select(
            connection,
            Held,
            "SELECT source, count(*), min(created_at), max(updated_at) FROM memories "
            f"WHERE namespace_id = ? AND {visible} AND substr(source, 1, length(?)) = ? "
            "GROUP BY source ORDER BY source",
            (namespace.id, *parameters, prefix, prefix),
        )
    )


def memories_held(connection: Connection, namespace: Namespace) -> list[Held]:
    """Return the visible memories as one value, the name of the namespace; none if there are none."""
    visible, parameters = visible_condition(namespace.sources)
    query = (
        "SELECT CAST(? AS TEXT), count(*), min(created_at), max(updated_at) FROM memories "
        f"WHERE namespace_id = ? AND {visible} HAVING count(*) > 0"
    )
    return list(select(connection, Held, query, (namespace.name, namespace.id, *parameters)))
