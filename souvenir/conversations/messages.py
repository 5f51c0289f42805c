"""Store, change, list and search messages. The scope's namespace is the agent, which a write creates if necessary.

A message is searchable when the write returns, unless `append` stored it. The single writer assigns its position in the
session, so positions have no gaps and follow the order of arrival.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from souvenir.conversations import pending_index
from souvenir.conversations.agents import ensure_agent
from souvenir.conversations.continued import NOTHING_YET, Continued
from souvenir.conversations.message_search import MessageQuery, MessageSearch, search_messages
from souvenir.core.errors import InvalidRequest, MessageNotFound, MessageUnreadable, NothingToDo
from souvenir.core.labels import notes_of, without_notes
from souvenir.core.passages import PreparedPassage
from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.text import is_blank
from souvenir.core.timestamps import utc_now
from souvenir.core.types import (
    JsonObject,
    PassageKind,
    RecordKind,
    Scope,
)
from souvenir.memories.engine import MemoryEngine
from souvenir.privacy.screening import AppliedPolicy
from souvenir.store.graph import mention_queue, mentions
from souvenir.store.idempotency import Once, do_once, made_before
from souvenir.store.learning import extractions
from souvenir.store.messages import messages as rows
from souvenir.store.messages import sessions
from souvenir.store.messages.agents import Agent, require_agent
from souvenir.store.messages.messages import Message, MessageDraft, MessageFilter
from souvenir.store.messages.sessions import MessagePlace
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

DEFAULT_IDLE = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """A screened and embedded message."""

    draft: MessageDraft
    passages: Sequence[PreparedPassage]


class Conversations:
    """The messages of one engine's agents. Thread-safe.

    :param idle: How long after a session's last message another one without a session id still belongs to it.
    """

    def __init__(self, engine: MemoryEngine, *, idle: timedelta = DEFAULT_IDLE) -> None:
        self._engine = engine
        self._idle = idle

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    # --- writing -----------------------------------------------------------------------------------------------

    @traced(MemoryOperation.CREATE)
    def add(self, scope: Scope, drafts: Sequence[MessageDraft], *, once: Once | None = None) -> Sequence[Message]:
        """Store messages in one transaction, all or none, in order; they are searchable when this returns.

        :raises SessionEnded: If the session of a message has ended.
        """
        before = None if once is None else self._made_before(scope, once)
        if before is not None:
            return before
        prepared = self.prepared(scope, drafts)

        def work(tx: Transaction) -> Sequence[Message]:
            agent = ensure_agent(tx)
            return do_once(
                tx,
                once,
                lambda: self.insert(tx, prepared),
                ids=lambda made: [one.uid for one in made],
                again=lambda uids: _require_messages(tx.connection, agent, uids),
            )

        return self._engine.write(scope, work)

    def prepared(self, scope: Scope, drafts: Sequence[MessageDraft]) -> Sequence[PreparedMessage]:
        """Screen messages by the agent's policy, and embed them for `insert`."""
        drafts = self._screened(scope, drafts)
        passages = self._engine.prepare([one.content for one in drafts], spoken_by=[one.spoken_by for one in drafts])
        return [PreparedMessage(*one) for one in zip(drafts, passages, strict=True)]

    def insert(self, tx: Transaction, prepared: Sequence[PreparedMessage]) -> Sequence[Message]:
        """`add` within a transaction of the caller.

        :raises SessionEnded: If the session of a message has ended.
        """
        inserted = self._insert(tx, ensure_agent(tx), [one.draft for one in prepared], indexed=True)
        tx.passages.insert_all([(one.owner, of.passages) for one, of in zip(inserted, prepared, strict=True)])
        return inserted

    @traced(MemoryOperation.CREATE, records=len)
    def append(
        self,
        scope: Scope,
        session_id: str,
        drafts: Sequence[MessageDraft],
        *,
        once: Once | None = None,
        continued: Continued = NOTHING_YET,
    ) -> Sequence[Message]:
        """Store messages of an active session durably without indexing them; `index_pending` makes them searchable.

        :param continued: What they continue. :raises NotFound: If that was deleted since.
        :raises SessionEnded: If it has ended.
        """
        screened = self._screened(scope, drafts)

        def work(tx: Transaction) -> Sequence[Message]:
            agent = ensure_agent(tx)
            continued.require(tx, agent, session_id)
            return do_once(
                tx,
                once,
                lambda: self._insert(tx, agent, screened, indexed=False, session_id=session_id),
                ids=lambda made: [one.uid for one in made],
                again=lambda uids: _require_messages(tx.connection, agent, uids),
            )

        return self._engine.write(scope, work)

    def index_pending(self, scope: Scope, session_id: str | None = None) -> int:
        """Index messages stored by `append`, of one session or of all; returns their number.

        :raises EmbeddingUnavailable: If the model cannot run.
        """
        return pending_index.index_pending(self._engine, scope, session_id)

    @traced(MemoryOperation.UPDATE, records=lambda _: 1)
    def edit(
        self, scope: Scope, uid: str, *, content: str | None = None, metadata: JsonObject | None = None
    ) -> Message:
        """Replace the content of a message, its metadata, or both; new content is indexed again.

        :raises NothingToDo: If neither is given.
        :raises InvalidRequest: If the new content is blank.
        :raises MessageNotFound: If there is no such message.
        """
        if content is None and metadata is None:
            raise NothingToDo("Nothing to change; give content or metadata")
        screening = self._engine.screening
        notes: JsonObject | None = None
        if metadata is not None:
            metadata = screening.metadata(scope, metadata)
        passages: Sequence[PreparedPassage] = ()
        if content is not None:
            _require_visible(content)
            content, notes = screening.content(scope, content, None)
            # The speaker is embedded with the content, and does not change.
            [passages] = self._engine.prepare([content], spoken_by=[self.get(scope, uid).spoken_by])

        def work(tx: Transaction) -> Message:
            agent = require_agent(tx.connection, scope)
            [message] = _require_messages(tx.connection, agent, [uid])
            # Notes on a text are kept as long as the text, unless the new metadata overwrites them.
            after: JsonObject | None = None if metadata is None else {**notes_of(message.metadata or {}), **metadata}
            if content is not None:
                kept = message.metadata and without_notes(message.metadata) if metadata is None else metadata
                after = kept if notes is None else {**(kept or {}), **notes}
            rows.keep_version(tx.connection, message.id, actor=tx.scope.actor, at=tx.now)
            rows.update(tx.connection, message.id, content=content, metadata=after, at=tx.now)
            if content not in (None, message.content):
                extractions.forget_said(tx.connection, tx.namespace_id, [message.id])
            if content is not None:
                tx.passages.delete(PassageKind.MESSAGE, [message.id])
                tx.passages.insert(message.owner, passages)
                mentions.reread(tx.connection, tx.namespace_id, RecordKind.MESSAGE, message.id)
            [changed] = _require_messages(tx.connection, agent, [uid])
            return changed

        return self._engine.write(scope, work)

    # --- reading -----------------------------------------------------------------------------------------------

    def get(self, scope: Scope, uid: str, as_of: datetime | None = None) -> Message:
        """Return a message, as it was at a time if one is given.

        :raises MessageNotFound: If there is, or was, no such message.
        """
        with self._engine.namespace(scope) as (connection, _):
            [message] = _require_messages(connection, require_agent(connection, scope), [uid], as_of)
        return message

    def page(
        self,
        scope: Scope,
        chosen: MessageFilter,
        as_of: datetime | None = None,
        *,
        offset: int = 0,
        limit: int = 100,
    ) -> tuple[Sequence[Message], int]:
        """Return a page of messages, newest first, and their total number; as they were, if a time is given."""
        with self._engine.namespace(scope) as (connection, _):
            agent = require_agent(connection, scope)
            return rows.page(connection, agent.namespace_id, chosen, offset=offset, limit=limit, as_of=as_of)

    def newest(self, scope: Scope, *, limit: int) -> Sequence[Message]:
        """Return the newest messages, without counting all of them."""
        with self._engine.namespace(scope) as (connection, _):
            agent = require_agent(connection, scope)
            return rows.newest(connection, agent.namespace_id, MessageFilter(), limit=limit)

    def of_session(
        self, scope: Scope, session_id: str, as_of: datetime | None = None, *, offset: int = 0, limit: int = 100
    ) -> tuple[Sequence[Message], int]:
        """Return a page of a session's messages in order of arrival, and their total number.

        :param as_of: As they were then; None for now. :raises SessionNotFound: If there is no such session.
        """
        with self._engine.namespace(scope) as (connection, _):
            session = sessions.require_session(connection, require_agent(connection, scope).namespace_id, session_id)
            return rows.of_session(connection, session.id, offset=offset, limit=limit, as_of=as_of)

    def offset_around(
        self, scope: Scope, session_id: str, uid: str, as_of: datetime | None = None, *, limit: int
    ) -> int:
        """Return the offset of the page of a session that has a message in its middle, or of the first page.

        :raises SessionNotFound: If there is no such session.
        :raises MessageNotFound: If it has, or had, no such message.
        """
        with self._engine.namespace(scope) as (connection, _):
            agent = require_agent(connection, scope)
            session = sessions.require_session(connection, agent.namespace_id, session_id)
            [message] = _require_messages(connection, agent, [uid], as_of)
            if message.session_row != session.id:
                raise MessageNotFound(uid)
            return max(0, rows.count_before(connection, message) - limit // 2)

    @traced(MemoryOperation.SEARCH, records=lambda found: len(found.hits))
    def search(self, scope: Scope, query: MessageQuery, as_of: datetime | None = None) -> MessageSearch:
        """Return the messages that answer a query best, by both retrieval arms, among all indexed ones.

        :param as_of: As it would have been answered then; None for now.
        :raises SearchUnavailable: If no arm can run.
        """
        return search_messages(self._engine, scope, query, as_of)

    def neighbours(
        self,
        scope: Scope,
        messages: Sequence[Message],
        as_of: datetime | None = None,
        *,
        before: int = 1,
        after: int = 1,
    ) -> Sequence[Message]:
        """Return these messages and their neighbours, without duplicates: session by session, in order."""
        with self._engine.namespace(scope) as (connection, _):
            agent = require_agent(connection, scope)
            ids = [one.id for one in messages]
            return rows.around(connection, agent.namespace_id, ids, before=before, after=after, as_of=as_of)

    # --- inside ------------------------------------------------------------------------------------------------

    def _made_before(self, scope: Scope, once: Once) -> Sequence[Message] | None:
        """Return the messages that the same request stored earlier, looked up before embedding."""
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return None
            uids = made_before(connection, namespace.id, scope.actor, once, utc_now())
            if uids is None:
                return None
            once.replayed()
            return _require_messages(connection, require_agent(connection, scope), uids)

    def _screened(self, scope: Scope, drafts: Sequence[MessageDraft]) -> Sequence[MessageDraft]:
        """Apply the agent's privacy policy.

        :raises InvalidRequest: If a message is blank.
        """
        for draft in drafts:
            _require_visible(draft.content)
        applied = self._engine.screening.applied(scope)
        return [_screened(draft, applied) for draft in drafts]

    def _insert(
        self,
        tx: Transaction,
        agent: Agent,
        drafts: Sequence[MessageDraft],
        *,
        indexed: bool,
        session_id: str | None = None,
    ) -> Sequence[Message]:
        """Store messages without their passages.

        :param session_id: The session of all; None: each names its own, or is of the active one.
        """
        inserted, opened = list[Message](), dict[str, int]()
        for draft in drafts:
            at = draft.created_at or tx.now
            place = self._place(tx, draft, session_id or draft.session_id, at, opened)
            message = rows.insert(
                tx.connection,
                tx.namespace_id,
                draft,
                place,
                agent_uid=agent.uid,
                actor=tx.scope.actor,
                created_at=at,
                stored_at=tx.now,
                indexed=indexed,
            )
            inserted.append(message)
        mention_queue.put(tx.connection, tx.namespace_id, RecordKind.MESSAGE, [one.id for one in inserted])
        return inserted

    def _place(
        self, tx: Transaction, draft: MessageDraft, session_id: str | None, at: datetime, opened: dict[str, int]
    ) -> MessagePlace:
        """Return the message's place in the named session, or else in the active one; either is created if needed.

        :param opened: The rows of the named sessions that this transaction has used.
        """
        connection, namespace_id = tx.connection, tx.namespace_id
        user_row = (
            None if draft.user is None else sessions.ensure_user(connection, namespace_id, draft.user, min(at, tx.now))
        )
        if session_id is None:
            row = sessions.running_row(connection, namespace_id, user_row, at, self._idle)
        else:
            row = opened.get(session_id) or sessions.open_row(connection, namespace_id, session_id)
        if row is None:
            row = sessions.insert(
                connection,
                namespace_id,
                name=session_id or str(uuid.uuid4()),
                user_row=user_row,
                title=None,
                metadata=None,
                implicit=session_id is None,
                started_at=at,
            )
        if session_id is not None:
            opened[session_id] = row
        return sessions.take_place(connection, row, at, user_row, draft.user)


def _require_visible(content: str) -> None:
    if is_blank(content):
        raise InvalidRequest("A message must not be blank; give at least one visible character")


def _screened(draft: MessageDraft, applied: AppliedPolicy) -> MessageDraft:
    content, metadata = applied.content(draft.content, draft.metadata)
    speaker = None if draft.speaker is None else applied.text(draft.speaker)
    return replace(draft, content=content, metadata=metadata, speaker=speaker)


def _require_messages(
    connection: Connection, agent: Agent, uids: Sequence[str], as_of: datetime | None = None
) -> Sequence[Message]:
    """:raises MessageNotFound: If one of them does not exist, or no longer does.

    :raises MessageUnreadable: If one of them is damaged.
    """
    found = rows.by_uid(connection, agent.namespace_id, uids, as_of)
    for uid in uids:
        if uid not in found:
            is_stored = rows.exists(connection, agent.namespace_id, uid, as_of)
            raise (MessageUnreadable if is_stored else MessageNotFound)(uid)
    return [found[uid] for uid in uids]
