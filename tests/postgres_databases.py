"""With `--engine postgres`, stores whose settings name no database are in PostgreSQL: one database per data folder.

A folder keeps its database as long as it exists, so a test that opens a folder again finds what it stored, and a test
that opens two folders has two stores. Processes that tests start follow by an environment variable.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from benchmarks.postgres_server import postgres_server
from souvenir.core.settings import Settings
from souvenir.store.postgres import replicas
from souvenir.store.postgres.schema import migrate

SERVER = "SOUVENIR_TESTS_POSTGRES_SERVER"
"""The environment variable with the address of the server."""

LEASE_S = 3.0
"""Jobs of a killed process are taken over after this time instead of 15 s."""

TEMPLATE = "migrated"
"""Copied in 20 ms, where the migrations take 200 ms."""


class PostgresDatabases:
    """The databases of one server. Thread-safe."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._folders: set[Path] = set()
        self._lock = Lock()

    def make_template(self) -> None:
        with self._connected() as connection:
            connection.execute(f"CREATE DATABASE {TEMPLATE}")
        with psycopg.connect(self._address_of(TEMPLATE), autocommit=True) as connection:
            migrate(connection)

    def address_for(self, folder: Path) -> str:
        """Return the address of the database of a data folder, which is created when it is first asked for."""
        folder = folder.resolve()
        with self._lock:
            if folder not in self._folders:
                # A process of the same test may have created it.
                with suppress(psycopg.errors.DuplicateDatabase):
                    self._create(_name_of(folder), TEMPLATE)
                self._folders.add(folder)
        return self._address_of(_name_of(folder))

    def copy(self, folder: Path, target: Path) -> None:
        """Create the database of a folder as a copy of that of another one, which nothing is connected to."""
        self._create(_name_of(target.resolve()), _name_of(folder.resolve()))

    def drop_those_without_folder(self) -> None:
        with self._lock:
            gone = [folder for folder in self._folders if not folder.exists()]
            if not gone:
                return
            with self._connected() as connection:
                for folder in gone:
                    connection.execute(f"DROP DATABASE {_name_of(folder)} WITH (FORCE)".encode())
            self._folders.difference_update(gone)

    def _create(self, name: str, template: str) -> None:
        with self._connected() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY".encode())

    def _connected(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self._address, autocommit=True)

    def _address_of(self, name: str) -> str:
        folder = conninfo_to_dict(self._address)["host"]
        return f"postgresql://postgres@/{name}?host={folder}"

    def use(self) -> None:
        """Give all settings of this process that name no database one of these."""
        replicas.LEASE_S = LEASE_S

        def database_url(settings: Settings) -> SecretStr | None:
            named: SecretStr | None = settings.__dict__["database_url"]
            return named or SecretStr(self.address_for(settings.database_path.parent))

        # A property comes before the field of an instance, and is computed after `data_dir` was changed in a copy.
        Settings.database_url = property(database_url)  # type: ignore[assignment]


def _name_of(folder: Path) -> str:
    return f"of_{hashlib.sha256(str(folder).encode()).hexdigest()[:24]}"


def copy_store(folder: Path, target: Path) -> None:
    """Copy the data folder of a closed store, with its database if that is elsewhere."""
    shutil.copytree(folder, target)
    if address := os.environ.get(SERVER):
        PostgresDatabases(address).copy(folder, target)


@contextmanager
def used_databases() -> Iterator[PostgresDatabases]:
    """Start a server whose databases this process uses from now on."""
    with (
        # Not in a folder of pytest, which every session that begins closes to other users, such as the server's.
        TemporaryDirectory(prefix="postgres") as folder,
        postgres_server(Path(folder)) as address,
        pytest.MonkeyPatch.context() as patch,
    ):
        databases = PostgresDatabases(address)
        databases.make_template()
        patch.setenv(SERVER, address)
        databases.use()
        yield databases


def follow_environment() -> None:
    """Use PostgreSQL in a started process if the tests do."""
    if address := os.environ.get(SERVER):
        PostgresDatabases(address).use()
