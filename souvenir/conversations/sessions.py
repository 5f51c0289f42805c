"""Sessions: one conversation each, started and ended by callers, or created for messages that name none.

An ended session accepts no more messages, and all of its messages are indexed.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime

import structlog

from souvenir.conversations.agents import ensure_agent
from souvenir.conversations.pending_index import index_pending
from souvenir.core.errors import EmbeddingUnavailable, NothingToDo, SessionEnded
from souvenir.core.types import JsonObject, Memory, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.idempotency import Once, do_once
from souvenir.store.learning import extractions
from souvenir.store.memories import reads
from souvenir.store.messages import sessions as rows
from souvenir.store.messages.agents import require_agent
from souvenir.store.messages.sessions import Session, SessionFilter, User
from souvenir.store.transaction import Transaction

INDEXED_AT_START = 256
"""Limit for messages of other sessions that a start indexes, left by a killed process: about a second of work."""

log = structlog.get_logger(__name__)


class Sessions:
    """The sessions of one engine's agents, and their users. Thread-safe."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def start(
        self,
        scope: Scope,
        session_id: str | None = None,
        *,
        user: str | None = None,
        title: str | None = None,
        metadata: JsonObject | None = None,
        started_at: datetime | None = None,
        once: Once | None = None,
    ) -> Session:
        """Start a session, or return the active one with that id unchanged.

        :param session_id: By default a new UUID.
        :param started_at: By default now; a time in the future counts as now.
        :raises SessionEnded: If the session with that id has ended.
        """
        title, metadata = self._screened(scope, title, metadata)

        def make(tx: Transaction) -> Session:
            held = None if session_id is None else rows.find(tx.connection, tx.namespace_id, session_id)
            if held is not None and held.ended_at is not None:
                raise SessionEnded(held.name)
            at = tx.now if started_at is None else min(started_at, tx.now)
            return held or _insert(tx, session_id, user=user, title=title, metadata=metadata, started_at=at)

        def work(tx: Transaction) -> Session:
            ensure_agent(tx)
            return do_once(
                tx,
                once,
                lambda: make(tx),
                ids=lambda made: [made.name],
                again=lambda names: rows.require_session(tx.connection, tx.namespace_id, names[0]),
            )

        started = self._engine.write(scope, work)
        self._index_what_others_left(scope)
        return started

    def end(self, scope: Scope, session_id: str, *, ended_at: datetime | None = None) -> Session:
        """End a session and index its messages; idempotent.

        :param ended_at: By default now; a time in the future counts as now.
        :raises SessionNotFound: If there is no such session.
        :raises EmbeddingUnavailable: If messages wait to be indexed and the model cannot run; the session stays active.
        """
        self.get(scope, session_id)
        index_pending(self._engine, scope, session_id)

        def work(tx: Transaction) -> Session:
            session = rows.require_session(tx.connection, tx.namespace_id, session_id)
            rows.end(tx.connection, session.id, tx.now if ended_at is None else min(ended_at, tx.now))
            return rows.require_session(tx.connection, tx.namespace_id, session_id)

        ended = self._engine.write(scope, work)
        # Index messages that were added in between.
        index_pending(self._engine, scope, session_id)
        return ended

    def change(
        self, scope: Scope, session_id: str, *, title: str | None = None, metadata: JsonObject | None = None
    ) -> Session:
        """Replace the title, the metadata, or both.

        :raises NothingToDo: If neither is given.
        :raises SessionNotFound: If there is no such session.
        """
        if title is None and metadata is None:
            raise NothingToDo("Nothing to change; give title or metadata")
        title, metadata = self._screened(scope, title, metadata)

        def work(tx: Transaction) -> Session:
            session = rows.require_session(tx.connection, require_agent(tx.connection, scope).namespace_id, session_id)
            rows.change(tx.connection, session.id, title=title, metadata=metadata)
            return rows.require_session(tx.connection, tx.namespace_id, session_id)

        return self._engine.write(scope, work)

    def get(self, scope: Scope, session_id: str) -> Session:
        """:raises SessionNotFound: If there is no such session."""
        with self._engine.namespace(scope) as (connection, _):
            return rows.require_session(connection, require_agent(connection, scope).namespace_id, session_id)

    def page(
        self, scope: Scope, chosen: SessionFilter, *, offset: int = 0, limit: int = 100
    ) -> tuple[Sequence[Session], int]:
        """Return a page of sessions, newest first, and their total number."""
        with self._engine.namespace(scope) as (connection, _):
            return rows.page(
                connection, require_agent(connection, scope).namespace_id, chosen, offset=offset, limit=limit
            )

    def learned(
        self, scope: Scope, session_id: str, *, offset: int = 0, limit: int = 100
    ) -> tuple[Sequence[Memory], int]:
        """Return a page of the memories extracted from a session, including archived ones, and their number.

        :raises SessionNotFound: If there is no such session.
        """
        with self._engine.namespace(scope) as (connection, namespace):
            agent = require_agent(connection, scope)
            session = rows.require_session(connection, agent.namespace_id, session_id)
            ids = extractions.memories_of(connection, agent.namespace_id, extractions.Party.SESSION, session.name)
            chosen = ids[offset : offset + limit]
            found = {} if namespace is None else reads.memories(connection, namespace, chosen)
            return [found[id_] for id_ in chosen if id_ in found], len(ids)

    def users(self, scope: Scope, *, offset: int = 0, limit: int = 100) -> tuple[Sequence[User], int]:
        """The users of the agent, ordered by name, and their number."""
        with self._engine.namespace(scope) as (connection, _):
            return rows.users(connection, require_agent(connection, scope).namespace_id, offset=offset, limit=limit)

    def _screened(
        self, scope: Scope, title: str | None, metadata: JsonObject | None
    ) -> tuple[str | None, JsonObject | None]:
        """Apply the agent's privacy policy."""
        screening = self._engine.screening
        return (
            None if title is None else screening.text(scope, title),
            None if metadata is None else screening.metadata(scope, metadata),
        )

    def _index_what_others_left(self, scope: Scope) -> None:
        try:
            index_pending(self._engine, scope, at_most=INDEXED_AT_START)
        except EmbeddingUnavailable as error:
            # The session has started; a later start or end tries again.
            log.warning("messages_not_indexed", reason=error.message)


def _insert(
    tx: Transaction,
    name: str | None,
    *,
    user: str | None,
    title: str | None,
    metadata: JsonObject | None,
    started_at: datetime,
) -> Session:
    name = name or str(uuid.uuid4())
    user_row = None if user is None else rows.ensure_user(tx.connection, tx.namespace_id, user, started_at)
    rows.insert(
        tx.connection,
        tx.namespace_id,
        name=name,
        user_row=user_row,
        title=title,
        metadata=metadata,
        implicit=False,
        started_at=started_at,
    )
    return rows.require_session(tx.connection, tx.namespace_id, name)
