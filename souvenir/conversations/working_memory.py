"""Tier 1, working memory: the newest messages of active conversations, cached in memory.

The database is authoritative. A cached window is used only if nothing was written to the agent since it was read, so
edits, deletions and messages that were added by other routes are visible immediately. Clearing a window is stored in
the database too; its messages stay in the history.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from souvenir.conversations.message_buffer import MAX_MESSAGES, BufferedMessage, MessageBuffer
from souvenir.conversations.messages import Conversations
from souvenir.core.timestamps import to_us
from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store import namespaces
from souvenir.store.idempotency import Once
from souvenir.store.messages import sessions
from souvenir.store.messages.agents import require_agent
from souvenir.store.messages.messages import Message, MessageDraft
from souvenir.store.transaction import Transaction

MEMORY_CHARS = 16_000_000
"""Maximum size of all cached windows together; the least recently used are evicted."""

_US = 1_000_000
_Key = tuple[int, str]
"""The id of a namespace, which is never reused, and the name of a session."""


@dataclass(slots=True)
class _Held:
    """:param change_seq: The agent's last write when the window was read."""

    window: MessageBuffer
    change_seq: int
    chars: int


class WorkingMemory:
    """Thread-safe."""

    def __init__(
        self,
        engine: MemoryEngine,
        conversations: Conversations,
        *,
        max_messages: int = MAX_MESSAGES,
        memory_chars: int = MEMORY_CHARS,
    ) -> None:
        """:param max_messages: Size of each context."""
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
        """Append a message to a conversation: durable when this returns, and searchable when the session ends.

        :raises SessionNotFound: If there is no such session.
        :raises SessionEnded: If it has ended.
        """
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = require_agent(connection, scope).namespace_id
            sessions.require_row(connection, namespace_id, session_id)
        key = namespace_id, session_id
        with self._lock:
            held = self._held.get(key)
            change_seq = -1 if held is None else held.change_seq
        [message] = self._conversations.append(scope, session_id, [draft], once=once)
        if held is not None and once is None:
            self._follow(key, message, change_seq)
        return message

    def newest(self, scope: Scope, session_id: str, limit: int | None = None) -> Sequence[BufferedMessage]:
        """Return the context, or its newest messages up to a limit, oldest first; empty for an ended session.

        :raises SessionNotFound: If there is no such session.
        """
        return self._window(scope, session_id).newest(limit)

    def fitting(self, scope: Scope, session_id: str, token_limit: int) -> Sequence[BufferedMessage]:
        """Return the newest messages of the context that fit together; oldest first.

        :raises SessionNotFound: If there is no such session.
        """
        return self._window(scope, session_id).fitting(token_limit)

    def clear(self, scope: Scope, session_id: str) -> int:
        """Start an empty context and return the number of removed messages, which stay in the history.

        :raises SessionNotFound: If there is no such session.
        """

        def work(tx: Transaction) -> int:
            row = sessions.require_row(tx.connection, require_agent(tx.connection, scope).namespace_id, session_id)
            left = len(sessions.window_messages(tx.connection, row, self._max_messages))
            sessions.clear_window(tx.connection, row)
            return left

        return self._engine.write(scope, work)

    def _window(self, scope: Scope, session_id: str) -> MessageBuffer:
        restores = self._restores
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = require_agent(connection, scope).namespace_id
            change_seq = namespaces.change_seq(connection, namespace_id)
            held = self._current((namespace_id, session_id), change_seq)
            if held is not None:
                return held
            row = sessions.require_row(connection, namespace_id, session_id)
            read = sessions.window_messages(connection, row, self._max_messages)
        window = MessageBuffer(self._max_messages)
        window.add(BufferedMessage(position, role, content, at_us / _US) for position, role, content, at_us in read)
        chars = sum(len(content) for _, _, content, _ in read)
        self._hold((namespace_id, session_id), _Held(window, change_seq, chars), restores)
        return window

    def _current(self, key: _Key, change_seq: int) -> MessageBuffer | None:
        with self._lock:
            held = self._held.get(key)
            if held is None or held.change_seq != change_seq:
                return None
            self._held.move_to_end(key)
            return held.window

    def _hold(self, key: _Key, held: _Held, restores: int) -> None:
        with self._lock:
            if restores != self._restores:
                # It was read from a database that was replaced.
                return
            self._chars -= self._held.pop(key).chars if key in self._held else 0
            self._held[key] = held
            self._chars += held.chars
            while self._chars > self._memory_chars:
                self._chars -= self._held.popitem(last=False)[1].chars

    def _follow(self, key: _Key, message: Message, change_seq: int) -> None:
        """Add a message that was just stored to its window, if nothing else was written since `change_seq`."""
        with self._engine.namespace(Scope()) as (connection, _):
            now = namespaces.change_seq(connection, key[0])
        said = BufferedMessage(message.position, message.role, message.content, to_us(message.created_at) / _US)
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
