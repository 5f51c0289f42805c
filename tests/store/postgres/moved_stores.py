"""Stores that tests move between the engines, and what they compare."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import psycopg
from pydantic import SecretStr

from souvenir.access.keys import ApiKeys, KeyDraft
from souvenir.api.transfer_lines import WrittenAs
from souvenir.core.settings import Settings
from souvenir.core.types import Filters, LinkType, MemoryDraft, Role, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals
from souvenir.store.selection import Chooses
from souvenir.store.sql import Connection
from souvenir.store.sqlite.connections import open_writer
from souvenir.transfer.export import Exports
from souvenir.transfer.migration import Migration, is_url, migrate_store
from souvenir.transfer.migration_rows import OF_ONE_ENGINE, tables
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.memories.erasure.conftest import no_jobs
from tests.memories.erasure.test_removals import furnish
from tests.store.make_database import fill

AGENTS = ("default", "ann", "cem")
NOW = datetime(2026, 5, 8, tzinfo=UTC)

CHOSEN = {
    "definitions": {"kind": "message"},
    "topic_claims": {"kind": "topic_name"},
    "claims": {"kind": "alias", "made_by": "caller"},
    "extractions": {"phase": "applied"},
    "extraction_facts": {"stage": "applied"},
    "learned_with": {"kind": "user"},
    "webhook_deliveries": {"status": "delivered"},
}
"""Values of columns that allow only some."""


def settings_of(place: str, folder: Path | None = None) -> Settings:
    """:param folder: Of the index snapshots, if the place is a URL."""
    if is_url(place):
        return Settings(data_dir=folder or Path("missing"), database_url=SecretStr(place))
    return Settings(data_dir=Path(place))


def make_store(folder: Path) -> None:
    """Store examples of everything by the services: memories of all states, agents, jobs, keys and a removal."""
    with closing(MemoryEngine.open(Settings(data_dir=folder), FakeEmbedder())) as engine:
        fill(engine)
        furnish(engine, Scope("ben"))
        furnish(engine, Scope("cem"))
        with closing(ApiKeys(engine, has_env_key=True)) as keys:
            key = keys.create(KeyDraft("writer", Role.READ_WRITE, namespace="cem"), by=Scope()).key
        of_key = Scope("cem", f"key:{key.id}")
        drafts = [MemoryDraft(f"note {number} of the garden", "notes", {"café": number / 7}) for number in range(30)]
        ids = engine.add_batch(of_key, drafts)
        engine.write(of_key, lambda tx: tx.link(ids[0], ids[1], LinkType.RELATED_TO))
        engine.delete(of_key, ids[-1])
        with closing(Removals(engine, on_jobs_gone=no_jobs)) as removals:
            removals.start()
            removals.remove(Scope("ben"), Chooses.AGENT)


def fill_empty_tables(folder: Path) -> None:
    """Insert a row into each table that has none, and a reference to a later row of the same table."""
    with closing(open_writer(Settings(data_dir=folder).database_path)) as opened:
        connection: Connection = opened
        for table in tables():
            if table.last_key(connection) is None:
                values = {name: _value(name, kind) for name, kind in zip(table.columns, table.types, strict=True)}
                values.update(dict.fromkeys(table.json, '{"a":"\\\\u0000"}'))
                query = 'SELECT "table", "from", "to" FROM pragma_foreign_key_list(?)'
                for other, column, key in connection.execute(query, (table.name,)).fetchall():
                    values[column] = connection.execute(f"SELECT {key or 'id'} FROM {other} LIMIT 1").get
                values.update(CHOSEN.get(table.name, {}))
                places = ", ".join("?" * len(values))
                connection.execute(f"INSERT INTO {table.name} VALUES ({places})", tuple(values.values()))
        last = "(SELECT max(id) FROM concepts)"
        connection.execute(f"UPDATE concepts SET same_as = {last} WHERE id <> {last}")


def _value(name: str, kind: str) -> Any:
    return {"INTEGER": 1, "TEXT": f"{name} é\t\\N", "REAL": 0.1, "BLOB": bytes(range(256))}[kind]


def rows_of(folder: Path) -> dict[str, list[Any]]:
    """Return the rows of all tables, with the checksums and the id counters."""
    with closing(apsw.Connection(str(Settings(data_dir=folder).database_path))) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found = {
            name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
            for name in names
            if name not in OF_ONE_ENGINE
        }
    found["meta"] = [row for row in found["meta"] if row[0] != "restored_over"]
    # A table that never had a row may have a counter of 0, or none.
    found["sqlite_sequence"] = [row for row in found["sqlite_sequence"] if row[1]]
    return found


def answers_of(place: str, folder: Path) -> list[Any]:
    """Return the exports of all agents, and answers to searches; the check finds nothing."""
    with closing(MemoryEngine.open(settings_of(place, folder), FakeEmbedder())) as engine:
        assert list(engine.check()) == []
        exports = Exports(engine, folder)
        found: list[Any] = []
        for name in AGENTS:
            lines = exports.stream(
                Scope(name), Filters(include_archived=True), WrittenAs(None, None, None), history=True
            )
            found.append(b"".join(lines).partition(b"\n")[2])
            hits = engine.search(Scope(name), SearchQuery("note of the garden and tea", now=NOW)).hits
            found.append([(hit.memory.id, hit.score) for hit in hits])
        return found


def move(source: str | Path, target: str | Path, *, searches: int = 0) -> list[str]:
    """Migrate, and return the report."""
    said: list[str] = []
    migrate_store(Settings(), Migration(str(source), str(target), searches), said.append, fake_of)
    return said


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = souvenir")
        yield connection
