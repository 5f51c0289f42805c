"""A PostgreSQL server, with an empty schema in it for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from benchmarks.postgres_server import postgres_server
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.schema import SCHEMA, migrate
from tests.postgres_databases import PostgresDatabases


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
