"""A PostgreSQL server, with an empty schema in it for each test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from benchmarks.postgres_server import postgres_server
from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.schema import SCHEMA, migrate
from tests.fake_embedder import FakeEmbedder
from tests.postgres_databases import PostgresDatabases
from tests.store.postgres.waiting import Open


@pytest.fixture(scope="session")
def server_address() -> Iterator[str]:
    # Not in a folder of pytest, which every session that begins closes to other users, such as the server's.
    with TemporaryDirectory(prefix="postgres") as folder, postgres_server(Path(folder)) as address:
        yield address


@pytest.fixture(scope="session")
def databases(server_address: str) -> PostgresDatabases:
    databases = PostgresDatabases(server_address)
    databases.make_template()
    return databases


@pytest.fixture
def postgres(server_address: str) -> Iterator[PostgresConnection]:
    with psycopg.connect(server_address, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        migrate(connection)
        connection.execute(f"SET search_path = {SCHEMA}")
        yield PostgresConnection(connection)


@pytest.fixture
def open_engine(tmp_path: Path, postgres: PostgresConnection, server_address: str) -> Iterator[Open]:
    """Opens an engine by the name of its folder; all share the database."""
    with ExitStack() as opened:

        def open_one(name: str, **values: Any) -> MemoryEngine:
            settings = Settings(data_dir=tmp_path / name, database_url=SecretStr(server_address), **values)
            return opened.enter_context(closing(MemoryEngine.open(settings, FakeEmbedder())))

        yield open_one
