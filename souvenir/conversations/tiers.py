"""The three memory tiers of an agent, and the context that a prompt gets from them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Self

from souvenir.conversations.agents import Agents
from souvenir.conversations.long_term import PREFERENCE, LongTermStore
from souvenir.conversations.message_buffer import MAX_MESSAGES, BufferedMessage
from souvenir.conversations.message_search import MessageQuery, MessageSearch
from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.conversations.working_memory import WorkingMemory
from souvenir.core.errors import InvalidRequest
from souvenir.core.settings import EmbedProvider, Settings
from souvenir.core.stored_json import to_json
from souvenir.core.types import LoadableEmbedder, Reranker, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import chosen_model
from souvenir.models.reranking.onnx_reranker import reranker_of

HISTORY_LIMIT = 5
MEMORY_LIMIT = 5


@dataclass(frozen=True, slots=True)
class TierContext:
    """The context of a prompt.

    :param memories: Texts `key: value`, best first; without preferences, which are complete in `preferences`.
    :param degraded: The arms of the searches that could not run.
    """

    session: Sequence[BufferedMessage]
    history: MessageSearch
    memories: Sequence[str]
    preferences: Mapping[str, str]
    degraded: Sequence[str]


class Tiers:
    """The services of the three tiers. Thread-safe."""

    def __init__(
        self,
        engine: MemoryEngine,
        *,
        conversations: Conversations | None = None,
        max_messages: int = MAX_MESSAGES,
    ) -> None:
        """:param max_messages: Size of the context of each active conversation."""
        self._engine = engine
        self.agents = Agents(engine)
        self.conversations = conversations or Conversations(engine)
        self.sessions = Sessions(engine)
        self.working_memory = WorkingMemory(engine, self.conversations, max_messages=max_messages)
        self.long_term = LongTermStore(engine)

    def history(
        self,
        scope: Scope,
        query: str,
        *,
        exclude: str | None = None,
        limit: int = HISTORY_LIMIT,
        without_topics: tuple[str, ...] = (),
    ) -> MessageSearch:
        """Return the best answers to a query in earlier messages.

        :param exclude: The active session, which is excluded.
        :param without_topics: Exclude messages that are flagged with one of these sensitive topics.
        """
        if limit < 1:
            return MessageSearch(())
        asked = MessageQuery(query, limit, exclude_session_id=exclude, without_topics=without_topics)
        return self.conversations.search(scope, asked)

    def context(self, scope: Scope, query: str, *, session_id: str | None) -> TierContext:
        """Return the context of a prompt for a query in a conversation, without topics that the agent's policy hides.

        :param session_id: The active session, or None.
        :raises SessionNotFound: If there is no such session.
        """
        said = () if session_id is None else self.working_memory.newest(scope, session_id)
        hidden = self._engine.screening.policy(scope).hidden_topics
        past = self.history(scope, query, exclude=session_id, without_topics=hidden)
        others = [category for category in self.long_term.categories if category != PREFERENCE]
        known = self.long_term.search(scope, query, categories=others, limit=MEMORY_LIMIT, without_topics=hidden)
        return TierContext(
            session=said,
            history=past,
            memories=[hit.text for hit in known.hits],
            preferences=self.long_term.preference_values(scope, without_topics=hidden),
            degraded=tuple(dict.fromkeys((*past.degraded, *known.degraded))),
        )


OLLAMA_HOST = "http://localhost:11434"

AGENT = "assistant"
"""The default agent."""

ACTOR = "python"
"""The actor in the history."""

OWN_MODEL = frozenset({"local", "default", EmbedProvider.ONNX.value})
"""Names for the model in this process."""


class EngineAccess:
    """Access to one agent in an engine. Thread-safe; `open` and `close` are idempotent."""

    def __init__(self, agent: str, tiers: Tiers | None, settings: Settings | None, max_messages: int) -> None:
        self._tiers = tiers
        self._settings = settings
        self._max_messages = max_messages
        self._own: tuple[MemoryEngine, LoadableEmbedder, Reranker | None] | None = None
        self._changing = Lock()
        self.scope = Scope(agent, ACTOR)

    @classmethod
    def to_engine(cls, engine: MemoryEngine, agent: str, *, max_messages: int = MAX_MESSAGES) -> Self:
        """Access to an engine that its owner opens and closes."""
        return cls(agent, Tiers(engine, max_messages=max_messages), None, max_messages)

    @classmethod
    def to_folder(cls, settings: Settings, agent: str = AGENT, *, max_messages: int = MAX_MESSAGES) -> Self:
        """Access to an engine that is opened and closed here."""
        return cls(agent, None, settings, max_messages)

    @property
    def tiers(self) -> Tiers:
        """:raises InvalidRequest: If the engine is not open."""
        if self._tiers is None:
            raise InvalidRequest("The memory is not open; await initialize() first")
        return self._tiers

    async def open(self) -> None:
        """:raises StoreUnusable: If the data folder cannot be opened; the message says what to do.

        :raises EmbeddingUnavailable: If the model cannot be loaded.
        :raises RerankingUnavailable: If the cross-encoder cannot be loaded.
        """
        await asyncio.to_thread(self._open)

    async def close(self) -> None:
        """Finish acknowledged writes, and release the folder."""
        await asyncio.to_thread(self._close)

    def _open(self) -> None:
        with self._changing:
            if self._tiers is not None or self._settings is None:
                return
            reranker = reranker_of(self._settings)
            embedder, spec = chosen_model(self._settings)
            try:
                embedder.load()
                engine = MemoryEngine.open(
                    self._settings, embedder, model_spec=to_json(spec.to_json()), reranker=reranker
                )
                engine.warm_up()
            except BaseException:
                embedder.close()
                raise
            self._own, self._tiers = (engine, embedder, reranker), Tiers(engine, max_messages=self._max_messages)

    def _close(self) -> None:
        with self._changing:
            if self._own is None:
                return
            engine, embedder, reranker = self._own
            self._own = self._tiers = None
            engine.close()
            embedder.close()
            if reranker is not None:
                reranker.close()


def settings_of(database: Path, model: str | None, *, ollama_host: str, provider: str | None = None) -> Settings:
    """:param model: The embedding model; None for the provider's default.

    :param provider: The model's provider: `ollama`, or `local` for this process. None means Ollama if a model is named.
    :raises InvalidRequest: If the provider is unknown.
    """
    named = provider or ("local" if model is None else "ollama")
    known = {**dict.fromkeys(OWN_MODEL, EmbedProvider.ONNX), **{one.value: one for one in EmbedProvider}}
    if named not in known:
        raise InvalidRequest(f"The embedder provider {named!r} is not known; give one of {', '.join(sorted(known))}")
    file = database.expanduser()
    settings = Settings(
        data_dir=file.parent,
        db_path=file,
        embed_provider=known[named],
        embed_model=model,
        embed_base_url=None,
    )
    # The default address is Ollama's own, which OLLAMA_HOST of the environment replaces.
    return settings if ollama_host == OLLAMA_HOST else settings.model_copy(update={"ollama_base_url": ollama_host})
