"""Both engines have the same schema: a migration that forgets one of them fails here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import apsw
import pytest

from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.schema import SCHEMA
from souvenir.store.postgres.schema import SCHEMA_VERSION as POSTGRES_VERSION
from souvenir.store.sql import Connection
from souvenir.store.sqlite.schema import SCHEMA_VERSION as SQLITE_VERSION
from souvenir.store.sqlite.schema import migrate

POSTGRES_TABLE = "schema_version"
"""SQLite has the version in the header of the file."""

ENDING_WITH_IDS = {"memories_by_namespace", "history_by_namespace", "passages_by_namespace", "facts_by_namespace"}
"""Indexes that end with the id in PostgreSQL, as all do in SQLite without saying so."""

SQLITE_INDEXES = {"memories_flagged", "messages_flagged"}
"""Rows that a rescan for privacy reads: the partial index works only for an expression of SQLite."""

TYPES = {"bigint": "INTEGER", "text": "TEXT", "bytea": "BLOB", "double precision": "REAL"}


@dataclass
class Columns:
    """:param types: By column, the type and whether it must have a value. :param key: The primary key.

    :param defaults: Constants only.
    """

    types: dict[str, tuple[str, bool]] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    unique: set[tuple[str, ...]] = field(default_factory=set)
    references: set[tuple[str, str, str]] = field(default_factory=set)
    checks: list[str] = field(default_factory=list)
    indexes: set[tuple[str, tuple[str, ...], bool, str]] = field(default_factory=set)
    counts_ids: bool = False
    defaults: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def sqlite() -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(":memory:")) as connection:
        migrate(connection)
        yield connection


def of_sqlite(connection: Connection) -> dict[str, Columns]:
    found: dict[str, Columns] = {}
    tables = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
        "AND name NOT LIKE '%_checksums'"
    ).fetchall()
    for name, statement in tables:
        table = found[name] = Columns(counts_ids="AUTOINCREMENT" in statement)
        columns = connection.execute('SELECT name, type, "notnull", pk, dflt_value FROM pragma_table_info(?)', (name,))
        keys = {}
        for column, kind, required, place, default in columns.fetchall():
            # A rowid is never null.
            table.types[column] = (kind, bool(required or place))
            keys.update({place: column} if place else {})
            if default is not None and "(" not in default:
                table.defaults[column] = default
        table.key = tuple(keys[place] for place in sorted(keys))
        for target, column, on_delete in connection.execute(
            'SELECT "table", "from", on_delete FROM pragma_foreign_key_list(?)', (name,)
        ):
            table.references.add((column, target, on_delete))
        table.checks = sorted(plain_check(one) for one in checks_in(statement))
        for index, unique, origin in connection.execute(
            'SELECT name, "unique", origin FROM pragma_index_list(?)', (name,)
        ).fetchall():
            columns_of = tuple(
                row[0] for row in connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,))
            )
            if origin == "u":
                table.unique.add(columns_of)
            elif origin == "c":
                sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (index,)).get
                table.indexes.add(
                    (index, columns_of, bool(unique), plain_check(re.split(r"\sWHERE ", f"{sql} WHERE ")[1]))
                )
    return found


def of_postgres(connection: PostgresConnection) -> dict[str, Columns]:
    found: dict[str, Columns] = {}
    rows = connection.execute(
        "SELECT table_name, column_name, data_type, is_nullable, is_identity, column_default "
        "FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name) "
        "WHERE table_schema = ? AND table_type = 'BASE TABLE' ORDER BY table_name, ordinal_position",
        (SCHEMA,),
    ).fetchall()
    for name, column, kind, nullable, identity, default in rows:
        table = found.setdefault(name, Columns())
        table.types[column] = (TYPES.get(kind, kind), nullable == "NO")
        table.counts_ids |= identity == "YES"
        if default is not None and "(" not in default:
            table.defaults[column] = re.sub(r"::\w+|^'(-?\d+)'$", r"\1", default)
    constraints = connection.execute(
        "SELECT c.relname, k.contype::text, pg_get_constraintdef(k.oid) FROM pg_constraint k "
        "JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? "
        "AND k.contype IN ('p', 'u', 'f', 'c')",
        (SCHEMA,),
    ).fetchall()
    for name, kind, definition in constraints:
        table = found[name]
        listed = tuple(re.findall(r"\w+", definition[definition.index("(") :].partition(")")[0]))
        match kind:
            case "p":
                table.key = listed
            case "u":
                table.unique.add(listed)
            case "f":
                _, target = re.findall(r"REFERENCES (\w+\.)?(\w+)", definition)[0]
                [on_delete] = re.findall(r"ON DELETE (CASCADE|SET NULL)", definition) or ["NO ACTION"]
                table.references.add((*listed, target, on_delete))
            case "c":
                table.checks.append(plain_check(definition.removeprefix("CHECK ")))
    for table in found.values():
        table.checks.sort()
    indexes = connection.execute(
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = ? "
        "AND indexname NOT IN (SELECT conname FROM pg_constraint)",
        (SCHEMA,),
    ).fetchall()
    for name, index, definition in indexes:
        listed, _, condition = definition.partition(" USING btree ")[2].partition(" WHERE ")
        columns = tuple(re.findall(r"\w+", listed))[: -1 if index in ENDING_WITH_IDS else None]
        found[name].indexes.add((index, columns, " UNIQUE " in definition, plain_check(condition)))
    return found


def checks_in(statement: str) -> Iterator[str]:
    """Yield the conditions of all CHECK constraints."""
    for found in re.finditer(r"CHECK \(", statement):
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(statement[end], 0)
            end += 1
        yield statement[found.end() : end - 1]


def plain_check(condition: str) -> str:
    """Return the names, numbers and texts of a condition in their order, without the words of either dialect."""
    condition = re.sub(r"json_valid\((\w+)\)", r"\1 IS JSON", condition)
    condition = re.sub(r"(\w+) IS NULL OR \1 IS JSON", r"\1 IS JSON", condition)
    condition = re.sub(r"(\w+) IS NULL OR \1 IN", r"\1 IN", condition)
    condition = re.sub(r"(\w+) BETWEEN (\w+) AND (\w+)", r"\1 >= \2 AND \1 <= \3", condition)
    condition = re.sub(r"::(text|bigint|double precision|integer)(\[\])?|= ANY|ARRAY| IN\b|(?<![<>])=", " ", condition)
    return " ".join(re.findall(r"'[^']*'|[\w.]+|[<>]=?", condition))


def differing(sqlite: apsw.Connection, postgres: PostgresConnection) -> set[str]:
    """Return the names of the tables that one engine lacks, or that have other columns or rules."""
    of_file, of_server = of_sqlite(sqlite), of_postgres(postgres)
    of_server.pop(POSTGRES_TABLE)
    for one in of_file.values():
        one.indexes = {index for index in one.indexes if index[0] not in SQLITE_INDEXES}
    return {name for name in of_file.keys() | of_server.keys() if of_file.get(name) != of_server.get(name)}


def test_both_engines_have_the_same_version():
    assert SQLITE_VERSION == POSTGRES_VERSION


def test_both_engines_have_the_same_tables_with_the_same_rules(sqlite: apsw.Connection, postgres: PostgresConnection):
    assert differing(sqlite, postgres) == set()


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("facts", "CREATE INDEX forgotten ON facts (made_by)"),
        ("links", "ALTER TABLE links ADD COLUMN forgotten TEXT"),
        ("topics", "CREATE UNIQUE INDEX forgotten ON topics (name) WHERE name IS NOT NULL"),
        ("forgotten", "CREATE TABLE forgotten (id INTEGER PRIMARY KEY)"),
    ],
)
def test_a_change_of_sqlite_alone_is_seen(
    sqlite: apsw.Connection, postgres: PostgresConnection, table: str, statement: str
):
    sqlite.execute(statement)
    assert differing(sqlite, postgres) == {table}


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("claims", "DROP CONSTRAINT claims_confidence_check"),
        ("messages", "ALTER COLUMN position DROP NOT NULL"),
        ("passages", "DROP CONSTRAINT passages_namespace_id_fkey"),
        ("vectors", "ALTER COLUMN tokens TYPE text USING NULL"),
        ("users", "DROP CONSTRAINT users_namespace_id_name_key"),
        ("sessions", "ALTER COLUMN window_from SET DEFAULT 1"),
        ("history", "ALTER COLUMN id DROP IDENTITY"),
        ("graphs", "DROP CONSTRAINT graphs_pkey"),
    ],
)
def test_a_change_of_postgresql_alone_is_seen(
    sqlite: apsw.Connection, postgres: PostgresConnection, table: str, statement: str
):
    postgres.execute(f"ALTER TABLE {table} {statement}")
    assert differing(sqlite, postgres) == {table}
