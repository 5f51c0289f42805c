"""A PostgreSQL server, with an empty schema in it for each test."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.schema import SCHEMA, migrate
from tests.postgres_server import postgres_server


@pytest.fixture(scope="session")
def server_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres_server(tmp_path_factory.mktemp("postgres")) as address:
        yield address


@pytest.fixture
def postgres(server_address: str) -> Iterator[PostgresConnection]:
    with psycopg.connect(server_address, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        migrate(connection)
        connection.execute(f"SET search_path = {SCHEMA}")
        yield PostgresConnection(connection)
