"""A database of an earlier release in PostgreSQL is migrated at the start, and keeps what it holds.

A replica of the earlier release that still runs meanwhile writes rows without the new columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.timestamps import utc_now
from souvenir.core.types import MessageRole, Scope
from souvenir.store.messages.messages import MessageDraft, MessageFilter
from souvenir.store.postgres import schema
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.schema import SCHEMA, migrate
from tests.store.postgres.test_schemas import differing, sqlite
from tests.store.postgres.waiting import Open

__all__ = ["sqlite"]

FIRST = min(schema.MIGRATIONS)
ANN = Scope("ann")
FROM_FIRST_RELEASE = """
INSERT INTO namespaces (name, created_at, changed_at) VALUES ('ann', 1000000, 1000000);
INSERT INTO agents (namespace_id, uid, policy, created_at) SELECT id, 'a-uid', '{}', 1000000 FROM namespaces;
INSERT INTO sessions (namespace_id, name, implicit, started_at, next_position)
    SELECT id, 's', 0, 1000000, 2 FROM namespaces;
INSERT INTO messages (uid, namespace_id, session_id, position, role, content, created_at, indexed)
    SELECT 'm-uid', namespace_id, id, 0, 'user', 'red', 2000000, 0 FROM sessions;
INSERT INTO messages (uid, namespace_id, session_id, position, role, content, created_at, indexed)
    SELECT 'of-the-future', namespace_id, id, 1, 'user', 'later', 99999999999999999, 0 FROM sessions;
"""


@pytest.fixture
def first_release(server_address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresConnection]:
    """A connection to a database of the first release with PostgreSQL, with one message."""
    with psycopg.connect(server_address, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        with monkeypatch.context() as earlier:
            earlier.setattr(schema, "MIGRATIONS", {FIRST: schema.MIGRATIONS[FIRST]})
            earlier.setattr(schema, "SCHEMA_VERSION", FIRST)
            migrate(connection)
        connection.execute(f"SET search_path = {SCHEMA}")
        connection.execute(FROM_FIRST_RELEASE.encode())
        migrate(connection)
        yield PostgresConnection(connection)


def test_a_migrated_database_has_the_tables_of_a_new_one(first_release: PostgresConnection, sqlite):
    assert differing(sqlite, first_release) == set()


def test_messages_of_the_earlier_release_are_there_from_their_time_on(
    postgres: PostgresConnection, first_release: PostgresConnection, open_engine: Open
):
    engine = open_engine("one")
    conversations = Conversations(engine)
    later, old = conversations.page(ANN, MessageFilter())[0]
    assert conversations.page(ANN, MessageFilter(), utc_now())[0] == [later, old]
    assert conversations.page(ANN, MessageFilter(), old.created_at)[1] == 1
    assert conversations.page(ANN, MessageFilter(), old.created_at - timedelta(seconds=1))[1] == 0
    before = utc_now()
    conversations.edit(ANN, old.uid, content="blue")
    conversations.add(ANN, [MessageDraft(MessageRole.USER, "green", session_id="s")])
    assert [one.content for one in conversations.page(ANN, MessageFilter(), before)[0]] == ["later", "red"]
    assert {one.content for one in conversations.page(ANN, MessageFilter())[0]} == {"later", "blue", "green"}
    assert list(engine.check()) == []
