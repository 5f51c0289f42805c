"""A data folder, and databases that are closed at the end of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from souvenir.core.settings import Settings
from souvenir.store.sqlite.database import SqliteDatabase
from tests.store.stored import MODEL_ID

OpenDatabase = Callable[..., SqliteDatabase]


@pytest.fixture
def open_database(settings: Settings) -> Iterator[OpenDatabase]:
    """Opens the folder of `settings`, with changes given as keywords."""
    with ExitStack() as opened:

        def open_it(model_id: str = MODEL_ID, **changes: object) -> SqliteDatabase:
            changed = Settings.model_validate(settings.model_dump() | changes)
            return opened.enter_context(closing(SqliteDatabase.open(changed, model_id)))

        yield open_it


@pytest.fixture
def database(open_database: OpenDatabase) -> SqliteDatabase:
    return open_database()
