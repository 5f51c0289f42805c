"""The three memory tiers behind one async interface: the active conversation, earlier ones, and long-term memory.

A message is durable when `add_to_session` returns, so it survives any end of the process: the next manager of the same
agent resumes the conversation with its context. Blocking work runs in threads, never in the event loop.

Invariant: a manager has one active conversation at a time. Neither `search_history` nor the history in
`build_context_for_llm` includes it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from souvenir.conversations.async_long_term import LongTermMemory
from souvenir.conversations.history import ConversationHistory, hit_as_dict
from souvenir.conversations.message_buffer import MAX_MESSAGES, role_named
from souvenir.conversations.tiers import (
    AGENT,
    HISTORY_LIMIT,
    OLLAMA_HOST,
    EngineAccess,
    TierContext,
    Tiers,
    settings_of,
)
from souvenir.core.errors import AgentNotFound, SessionEnded, SessionNotFound
from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.messages.sessions import SessionFilter

STARTED_BY = {"started_by": "MemoryManager"}
"""Metadata of conversations started by a manager, by which the next one recognises them."""

_PAGE = 100


@dataclass(slots=True)
class MemoryConfig:
    """:param session_max_messages: Size of the active conversation's context.

    :param history_db: The database file; its folder must hold no other database.
    :param chromadb_path: Ignored: vectors are stored in the database.
    :param mem0_llm_provider: Ignored, like `mem0_llm_model`: values are stored verbatim.
    :param mem0_embedder_provider: The embedding provider: `local` for the model in this process, `ollama`, `openai`.
    :param mem0_embedder_model: That provider's model; None for its default.
    """

    session_max_messages: int = MAX_MESSAGES
    history_db: str | Path = "data/memory.db"
    chromadb_path: str | Path = "data/chromadb"
    mem0_llm_provider: str = "ollama"
    mem0_llm_model: str = "qwen3:8b"
    mem0_embedder_provider: str = "local"
    mem0_embedder_model: str | None = None


class MemoryManager:
    """Await `initialize` first and `close` last, or use it with `async with`; safe for concurrent tasks."""

    def __init__(
        self, config: MemoryConfig, ollama_host: str = OLLAMA_HOST, *, access: EngineAccess | None = None
    ) -> None:
        """:param access: Access to a shared engine; replaces the settings of the config.

        :raises InvalidRequest: If the embedding provider is unknown, or the context would hold no message.
        """
        self._access = access or _access_of(config, ollama_host)
        self.history = ConversationHistory(access=self._access)
        self.long_term = LongTermMemory(access=self._access)
        self._session_id: str | None = None
        self._starting, self._ending = Lock(), Lock()

    @classmethod
    def over(cls, engine: MemoryEngine, *, agent: str = AGENT, session_max_messages: int = MAX_MESSAGES) -> Self:
        """Create an agent's manager in a running engine, which its owner closes."""
        config = MemoryConfig(session_max_messages)
        return cls(config, access=EngineAccess.to_engine(engine, agent, max_messages=session_max_messages))

    async def initialize(self) -> None:
        """Open the engine if necessary, and resume the latest conversation that was not ended.

        :raises StoreUnusable: If the data folder cannot be opened. :raises EmbeddingUnavailable: Without a model.
        """
        await self.history.initialize()
        await asyncio.to_thread(self._find_running)

    async def close(self) -> None:
        """Release the engine. The next `initialize` resumes the conversation."""
        await self._access.close()

    async def __aenter__(self) -> Self:
        await self.initialize()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- tier 1: the active conversation ---------------------------------------------------------------------------

    async def get_session_context(self) -> list[dict[str, Any]]:
        """Return the newest messages of the active conversation, `{role, content, timestamp}`, oldest first."""
        return await asyncio.to_thread(self._session_context)

    async def add_to_session(self, role: str, content: str) -> None:
        """Append a message to the active conversation, started if necessary; durable when this returns.

        :raises InvalidRequest: If there is no such role.
        """
        draft = MessageDraft(role_named(role), content)
        await asyncio.to_thread(self._append, draft)

    async def clear_session(self) -> None:
        """Start an empty context. The conversation continues, and its messages stay in the history."""
        await asyncio.to_thread(self._clear)

    # --- tier 2: earlier conversations -----------------------------------------------------------------------------

    async def search_history(self, query: str, limit: int = HISTORY_LIMIT) -> list[dict[str, Any]]:
        """Return the best matching messages of other conversations, best first, with `similarity` and `score`."""
        found = await asyncio.to_thread(self._tiers.history, self._scope, query, exclude=self._session_id, limit=limit)
        return [hit_as_dict(hit) for hit in found.hits]

    async def get_conversation_history(self, conversation_id: str) -> dict[str, Any] | None:
        """Return a conversation with all its `messages`, also the active one; None if there is none with this id."""
        return await self.history.get_conversation(conversation_id)

    # --- tier 3: long-term memory ----------------------------------------------------------------------------------

    async def remember(self, key: str, value: str) -> None:
        """Store a value under a key, replacing the previous one."""
        await self.long_term.remember(key, value)

    async def recall(self, query: str) -> list[str]:
        """Return the best answers to a query, each as `key: value`, best first."""
        return await self.long_term.recall(query)

    async def get_user_preferences(self) -> dict[str, str]:
        return await self.long_term.get_user_preferences()

    async def set_preference(self, key: str, value: str) -> None:
        await self.long_term.set_preference(key, value)

    # --- start and end ---------------------------------------------------------------------------------------------

    async def start_conversation(self) -> str:
        """End the active conversation, if there is one, and start another; returns its id.

        :raises EmbeddingUnavailable: If the active one cannot be indexed; it stays active then.
        """
        return await asyncio.to_thread(self._start)

    async def end_conversation(self) -> None:
        """Index the messages of the active conversation and end it; the context is empty afterwards.

        :raises EmbeddingUnavailable: If it cannot be indexed; it stays active then, and nothing is lost.
        """
        await asyncio.to_thread(self._end)

    # --- for prompts -----------------------------------------------------------------------------------------------

    async def build_context_for_llm(self, query: str) -> dict[str, Any]:
        """Return the context of a prompt: the active conversation, relevant messages and memories, and all preferences.

        Preferences are not repeated among the memories.
        """
        found = await asyncio.to_thread(self._context, query)
        return {
            "session_messages": [message.to_dict() for message in found.session],
            "relevant_history": [hit_as_dict(hit) for hit in found.history.hits],
            "relevant_memories": list(found.memories),
            "user_preferences": dict(found.preferences),
        }

    # --- internal, in threads --------------------------------------------------------------------------------------

    @property
    def _tiers(self) -> Tiers:
        return self._access.tiers

    @property
    def _scope(self) -> Scope:
        return self._access.scope

    def _session_context(self) -> list[dict[str, Any]]:
        session_id = self._session_id
        if session_id is None:
            return []
        try:
            return [message.to_dict() for message in self._tiers.working_memory.newest(self._scope, session_id)]
        except SessionNotFound:
            self._forget_active(session_id)
            return []

    def _context(self, query: str) -> TierContext:
        session_id = self._session_id
        try:
            return self._tiers.context(self._scope, query, session_id=session_id)
        except SessionNotFound:
            self._forget_active(session_id)
            return self._tiers.context(self._scope, query, session_id=None)

    def _clear(self) -> None:
        session_id = self._session_id
        if session_id is not None:
            with suppress(SessionNotFound):
                self._tiers.working_memory.clear(self._scope, session_id)

    def _append(self, draft: MessageDraft) -> None:
        while True:
            session_id = self._running()
            try:
                self._tiers.working_memory.append(self._scope, session_id, draft)
            except (SessionEnded, SessionNotFound, AgentNotFound):
                # It was ended or deleted concurrently; the message goes to a new one.
                self._forget_active(session_id)
            else:
                return

    def _running(self) -> str:
        with self._starting:
            if self._session_id is None:
                self._session_id = self._tiers.sessions.start(self._scope, metadata=STARTED_BY).name
            return self._session_id

    def _forget_active(self, session_id: str | None) -> None:
        with self._starting:
            if self._session_id == session_id:
                self._session_id = None

    def _start(self) -> str:
        self._end()
        # A conversation that a concurrent message started in between is as new.
        return self._running()

    def _end(self) -> None:
        with self._ending:
            session_id = self._session_id
            if session_id is not None:
                with suppress(SessionNotFound, AgentNotFound):
                    self._tiers.sessions.end(self._scope, session_id)
                self._forget_active(session_id)

    def _find_running(self) -> None:
        offset = 0
        with self._starting:
            while self._session_id is None:
                page, total = self._tiers.sessions.page(
                    self._scope, SessionFilter(open=True), offset=offset, limit=_PAGE
                )
                ours = (one.name for one in page if (one.metadata or {}).items() >= STARTED_BY.items())
                self._session_id = next(ours, None)
                offset += len(page)
                if not page or offset >= total:
                    return


def _access_of(config: MemoryConfig, ollama_host: str) -> EngineAccess:
    settings = settings_of(
        Path(config.history_db),
        config.mem0_embedder_model,
        ollama_host=ollama_host,
        provider=config.mem0_embedder_provider,
    )
    return EngineAccess.to_folder(settings, max_messages=config.session_max_messages)
