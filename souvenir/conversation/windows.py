"""Tier 1, for any agent: the context of conversations that run, in memory, with every message in the database too.

What is in memory is a copy, used only while nothing was written to the agent since it was read: so an edit, a deletion
or a message that came another way is seen at once, and what found no room or went with its process is read again.
A clear is in the database as well; what was said before it stays in the history.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import apsw

from memory_engine import MemoryEngine
from souvenir.conversation.messages import Conversations
from souvenir.conversation.window import MAX_MESSAGES, MessageWindow, WindowMessage
from souvenir.errors import SessionNotFound
from souvenir.moments import to_us
from souvenir.store import sessions
from souvenir.store import windows as rows
from souvenir.store.agents import known
from souvenir.store.idempotency import Once
from souvenir.store.messages import Message, MessageDraft
from souvenir.store.transaction import Transaction
from souvenir.types import Scope

MEMORY_CHARS = 16_000_000
"""Of all windows in memory together; the least recently used leave."""

_US = 1_000_000
_Key = tuple[int, str]
"""Of a namespace, whose id is never used again, and a session's name."""


@dataclass(slots=True)
class _Held:
    """:param change_seq: The agent's last write when the window was read."""

    window: MessageWindow
    change_seq: int
    chars: int


class Windows:
    """Safe to call from any thread."""

    def __init__(
        self,
        engine: MemoryEngine,
        conversations: Conversations,
        *,
        max_messages: int = MAX_MESSAGES,
        memory_chars: int = MEMORY_CHARS,
    ) -> None:
        """:param max_messages: In each context."""
        self._engine = engine
        self._conversations = conversations
        self._max_messages = max_messages
        self._memory_chars = memory_chars
        self._held: OrderedDict[_Key, _Held] = OrderedDict()
        self._chars = 0
        self._restores = 0
        self._lock = Lock()
        engine.when_restored(self._forget_all)

    def append(self, scope: Scope, session_id: str, draft: MessageDraft, *, once: Once | None = None) -> Message:
        """Say something in a conversation: durable when this returns, and found by searches when the session ends.

        :raises SessionNotFound: If there is no such session.
        :raises SessionEnded: If it has ended.
        """
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = known(connection, scope).namespace_id
            _row_of(connection, namespace_id, session_id)
        key = namespace_id, session_id
        with self._lock:
            held = self._held.get(key)
            change_seq = -1 if held is None else held.change_seq
        [message] = self._conversations.append(scope, session_id, [draft], once=once)
        if held is not None and once is None:
            self._follow(key, message, change_seq)
        return message

    def newest(self, scope: Scope, session_id: str, limit: int | None = None) -> Sequence[WindowMessage]:
        """The context, or so many of its newest messages; oldest first. That of a session that has ended is empty.

        :raises SessionNotFound: If there is no such session.
        """
        return self._window(scope, session_id).newest(limit)

    def fitting(self, scope: Scope, session_id: str, token_limit: int) -> Sequence[WindowMessage]:
        """The newest messages of the context that fit together; oldest first.

        :raises SessionNotFound: If there is no such session.
        """
        return self._window(scope, session_id).fitting(token_limit)

    def clear(self, scope: Scope, session_id: str) -> int:
        """Let the context begin anew; what was said stays in the history. Tells how many messages leave the context.

        :raises SessionNotFound: If there is no such session.
        """

        def work(tx: Transaction) -> int:
            row = _row_of(tx.connection, known(tx.connection, scope).namespace_id, session_id)
            left = len(rows.newest(tx.connection, row, self._max_messages))
            rows.clear(tx.connection, row)
            return left

        return self._engine.write(scope, work)

    def _window(self, scope: Scope, session_id: str) -> MessageWindow:
        restores = self._restores
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = known(connection, scope).namespace_id
            change_seq = rows.change_seq(connection, namespace_id)
            held = self._current((namespace_id, session_id), change_seq)
            if held is not None:
                return held
            row = _row_of(connection, namespace_id, session_id)
            read = rows.newest(connection, row, self._max_messages)
        window = MessageWindow(self._max_messages)
        window.add(WindowMessage(position, role, content, at_us / _US) for position, role, content, at_us in read)
        chars = sum(len(content) for _, _, content, _ in read)
        self._hold((namespace_id, session_id), _Held(window, change_seq, chars), restores)
        return window

    def _current(self, key: _Key, change_seq: int) -> MessageWindow | None:
        with self._lock:
            held = self._held.get(key)
            if held is None or held.change_seq != change_seq:
                return None
            self._held.move_to_end(key)
            return held.window

    def _hold(self, key: _Key, held: _Held, restores: int) -> None:
        with self._lock:
            if restores != self._restores:
                # It was read of a database that is gone.
                return
            self._chars -= self._held.pop(key).chars if key in self._held else 0
            self._held[key] = held
            self._chars += held.chars
            while self._chars > self._memory_chars:
                self._chars -= self._held.popitem(last=False)[1].chars

    def _follow(self, key: _Key, message: Message, change_seq: int) -> None:
        """Put a message that was just stored into its window, if nothing else was written since `change_seq`."""
        with self._engine.namespace(Scope()) as (connection, _):
            now = rows.change_seq(connection, key[0])
        said = WindowMessage(message.position, message.role, message.content, to_us(message.created_at) / _US)
        with self._lock:
            held = self._held.get(key)
            if held is not None and held.change_seq == change_seq == now - 1:
                held.window.add([said])
                held.change_seq = now
                held.chars += len(said.content)
                self._chars += len(said.content)

    def _forget_all(self) -> None:
        with self._lock:
            self._held.clear()
            self._chars = 0
            self._restores += 1


def _row_of(connection: apsw.Connection, namespace_id: int, session_id: str) -> int:
    """:raises SessionNotFound: If there is no such session."""
    row = sessions.row_of(connection, namespace_id, session_id)
    if row is None:
        raise SessionNotFound(session_id)
    return row
