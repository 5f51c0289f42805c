"""Which engine a Python surface works on: one that runs already, or one of a folder, opened and closed with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Lock
from typing import Self

from memory_engine import MemoryEngine
from souvenir.conversation.tiers import Tiers
from souvenir.conversation.window import MAX_MESSAGES
from souvenir.errors import InvalidRequest
from souvenir.reembedding.choice import chosen_model
from souvenir.reranking.onnx_reranker import reranker_of
from souvenir.settings import EmbedProvider, Settings
from souvenir.store.rows import to_json
from souvenir.types import LoadableEmbedder, Reranker, Scope

OLLAMA_HOST = "http://localhost:11434"

AGENT = "assistant"
"""Whose memory it is where nobody says so."""

ACTOR = "python"
"""What the history names as the actor."""

OWN_MODEL = frozenset({"local", "default", EmbedProvider.ONNX.value})
"""Names for the model in this process."""


class EngineAccess:
    """To one agent's part of an engine; safe to open and close more than once, from any thread."""

    def __init__(self, agent: str, tiers: Tiers | None, settings: Settings | None, max_messages: int) -> None:
        self._tiers = tiers
        self._settings = settings
        self._max_messages = max_messages
        self._own: tuple[MemoryEngine, LoadableEmbedder, Reranker | None] | None = None
        self._changing = Lock()
        self.scope = Scope(agent, ACTOR)

    @classmethod
    def to_engine(cls, engine: MemoryEngine, agent: str, *, max_messages: int = MAX_MESSAGES) -> Self:
        """To one that somebody else opens and closes."""
        return cls(agent, Tiers(engine, max_messages=max_messages), None, max_messages)

    @classmethod
    def to_folder(cls, settings: Settings, agent: str = AGENT, *, max_messages: int = MAX_MESSAGES) -> Self:
        """To one that is opened and closed here."""
        return cls(agent, None, settings, max_messages)

    @property
    def tiers(self) -> Tiers:
        """:raises InvalidRequest: If the engine is not open."""
        if self._tiers is None:
            raise InvalidRequest("The memory is not open; await initialize() first")
        return self._tiers

    async def open(self) -> None:
        """:raises StoreUnusable: If the data folder must not be opened; the sentence says what to do.

        :raises EmbeddingUnavailable: If the model cannot be loaded.
        :raises RerankingUnavailable: If the cross-encoder cannot be.
        """
        await asyncio.to_thread(self._open)

    async def close(self) -> None:
        """Finish what was acknowledged, and let go of the folder."""
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
    """:param model: That embeds; None: the provider's usual one.

    :param provider: Of the model: `ollama`, or `local` for this process. None: Ollama if a model is named.
    :raises InvalidRequest: If nobody knows the provider.
    """
    named = provider or ("local" if model is None else "ollama")
    known = {**dict.fromkeys(OWN_MODEL, EmbedProvider.ONNX), **{one.value: one for one in EmbedProvider}}
    if named not in known:
        raise InvalidRequest(f"The embedder provider {named!r} is not known; give one of {', '.join(sorted(known))}")
    file = database.expanduser()
    return Settings(
        data_dir=file.parent,
        db_path=file,
        embed_provider=known[named],
        embed_model=model,
        embed_base_url=None,
        ollama_base_url=ollama_host,
    )
