"""Tier 2 for Python: conversations and their search. Blocking work runs in threads, never in the event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Self

from souvenir.conversations.message_buffer import role_named
from souvenir.conversations.message_search import MessageHit, MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.conversations.tiers import AGENT, OLLAMA_HOST, EngineAccess, settings_of
from souvenir.core.errors import SessionNotFound
from souvenir.core.types import JsonObject, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import Message, MessageDraft
from souvenir.store.messages.sessions import Session, SessionFilter

_PAGE = 1000


class ConversationHistory:
    """One agent's conversations. Await `initialize` first and `close` last; safe for concurrent tasks."""

    def __init__(
        self,
        db_path: str | Path = "data/memory.db",
        ollama_host: str = OLLAMA_HOST,
        embed_model: str | None = None,
        *,
        access: EngineAccess | None = None,
    ) -> None:
        """:param db_path: The database file; its folder must hold no other database.

        :param embed_model: A model of the Ollama at `ollama_host`; None for the model in this process.
        :param access: Access to a shared engine, instead of all other parameters.
        """
        self._access = access or EngineAccess.to_folder(
            settings_of(Path(db_path), embed_model, ollama_host=ollama_host)
        )

    @classmethod
    def over(cls, engine: MemoryEngine, *, agent: str = AGENT) -> Self:
        """Create an agent's history in a running engine, which its owner closes."""
        return cls(access=EngineAccess.to_engine(engine, agent))

    async def initialize(self) -> None:
        """Open the engine, if it is not open, and create the agent, if it is new.

        :raises StoreUnusable: If the data folder cannot be opened. :raises EmbeddingUnavailable: Without a model.
        """
        await self._access.open()
        await asyncio.to_thread(self._access.tiers.agents.create, self._scope)

    async def close(self) -> None:
        await self._access.close()

    async def start_conversation(self, metadata: JsonObject | None = None) -> str:
        """Start a conversation; returns its id."""
        return (await asyncio.to_thread(self._sessions.start, self._scope, metadata=metadata)).name

    async def end_conversation(self, conversation_id: str) -> None:
        """:raises SessionNotFound: If there is no such conversation."""
        await asyncio.to_thread(self._sessions.end, self._scope, conversation_id)

    async def add_message(self, conversation_id: str, role: str, content: str) -> str:
        """Store and index a message; returns its id.

        :raises SessionNotFound: If there is no such conversation.
        :raises SessionEnded: If it has ended.
        :raises EmbeddingUnavailable: If the model cannot run; nothing was stored.
        """
        draft = MessageDraft(role_named(role), content, session_id=conversation_id)

        def add() -> str:
            self._sessions.get(self._scope, conversation_id)
            [message] = self._conversations.add(self._scope, [draft])
            return message.uid

        return await asyncio.to_thread(add)

    async def search(self, query: str, limit: int = 5, conversation_id: str | None = None) -> list[dict[str, Any]]:
        """Return the messages that answer a query best, best first, of one conversation or of all.

        Each is a message with `similarity`, the cosine to the query, and `score`, the probability that it answers.
        """
        if limit < 1:
            return []
        asked = MessageQuery(query, limit, session_id=conversation_id)
        found = await asyncio.to_thread(self._conversations.search, self._scope, asked)
        return [hit_as_dict(hit) for hit in found.hits]

    async def get_conversation(self, conversation_id: str) -> dict[str, Any] | None:
        """Return the conversation with all its `messages` in order; None if there is none with this id."""
        try:
            return await asyncio.to_thread(self._whole, conversation_id)
        except SessionNotFound:
            return None

    async def list_conversations(self, limit: int = 10, offset: int = 0) -> list[dict[str, Any]]:
        """Return conversations, newest first, each with `message_count`."""
        found, _ = await asyncio.to_thread(
            self._sessions.page, self._scope, SessionFilter(), offset=max(offset, 0), limit=max(limit, 0)
        )
        return [_session_as_dict(session) for session in found]

    def _whole(self, conversation_id: str) -> dict[str, Any]:
        session = self._sessions.get(self._scope, conversation_id)
        messages: list[Message] = []
        while True:
            page, total = self._conversations.of_session(
                self._scope, conversation_id, offset=len(messages), limit=_PAGE
            )
            messages += page
            if not page or len(messages) >= total:
                return {**_session_as_dict(session), "messages": [message_as_dict(message) for message in messages]}

    @property
    def _scope(self) -> Scope:
        return self._access.scope

    @property
    def _conversations(self) -> Conversations:
        return self._access.tiers.conversations

    @property
    def _sessions(self) -> Sessions:
        return self._access.tiers.sessions


def message_as_dict(message: Message) -> dict[str, Any]:
    return {
        "id": message.uid,
        "conversation_id": message.session_id,
        "role": message.role.value,
        "content": message.content,
        "timestamp": message.created_at.timestamp(),
    }


def hit_as_dict(hit: MessageHit) -> dict[str, Any]:
    return {**message_as_dict(hit.message), "similarity": hit.similarity, "score": hit.score}


def _session_as_dict(session: Session) -> dict[str, Any]:
    return {
        "id": session.name,
        "started_at": session.started_at.timestamp(),
        "ended_at": None if session.ended_at is None else session.ended_at.timestamp(),
        "metadata": None if session.metadata is None else dict(session.metadata),
        "message_count": session.messages,
    }
