"""Which engine a Python surface works on: one that runs already, or one of a folder, opened and closed with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Lock
from typing import Self

from memory_engine import MemoryEngine
from souvenir.errors import InvalidRequest
from souvenir.reembedding.choice import chosen_model
from souvenir.settings import EmbedProvider, Settings
from souvenir.store.rows import to_json
from souvenir.types import LoadableEmbedder, Scope

OLLAMA_HOST = "http://localhost:11434"

AGENT = "assistant"
"""Whose memory it is where nobody says so."""

ACTOR = "python"
"""What the history names as the actor."""

OWN_MODEL = frozenset({"local", "default", EmbedProvider.ONNX.value})
"""Names for the model in this process."""


class EngineAccess:
    """To one agent's part of an engine; safe to open and close more than once, from any thread."""

    def __init__(self, engine: MemoryEngine | None, settings: Settings | None, agent: str) -> None:
        self._engine = engine
        self._settings = settings
        self._embedder: LoadableEmbedder | None = None
        self._changing = Lock()
        self.scope = Scope(agent, ACTOR)

    @classmethod
    def to_engine(cls, engine: MemoryEngine, agent: str) -> Self:
        """To one that somebody else opens and closes."""
        return cls(engine, None, agent)

    @classmethod
    def to_folder(cls, settings: Settings, agent: str = AGENT) -> Self:
        """To one that is opened and closed here."""
        return cls(None, settings, agent)

    @property
    def engine(self) -> MemoryEngine:
        """:raises InvalidRequest: If it is not open."""
        if self._engine is None:
            raise InvalidRequest("The memory is not open; await initialize() first")
        return self._engine

    async def open(self) -> None:
        """:raises StoreUnusable: If the data folder must not be opened; the sentence says what to do.

        :raises EmbeddingUnavailable: If the model cannot be loaded.
        """
        await asyncio.to_thread(self._open)

    async def close(self) -> None:
        """Finish what was acknowledged, and let go of the folder."""
        await asyncio.to_thread(self._close)

    def _open(self) -> None:
        with self._changing:
            if self._engine is not None or self._settings is None:
                return
            embedder, spec = chosen_model(self._settings)
            try:
                embedder.load()
                engine = MemoryEngine.open(self._settings, embedder, model_spec=to_json(spec.to_json()))
                engine.warm_up()
            except BaseException:
                embedder.close()
                raise
            self._engine, self._embedder = engine, embedder

    def _close(self) -> None:
        with self._changing:
            if self._embedder is None or self._engine is None:
                return
            self._engine.close()
            self._embedder.close()
            self._engine = self._embedder = None


def settings_of(database: Path, model: str | None, *, ollama_host: str, provider: str | None = None) -> Settings:
    """:param model: That embeds; None: the provider's usual one.

    :param provider: Of the model: `ollama`, or `local` for this process. None: Ollama if a model is named.
    :raises InvalidRequest: If nobody knows the provider.
    """
    named = provider or ("local" if model is None else "ollama")
    known = {**dict.fromkeys(OWN_MODEL, EmbedProvider.ONNX), **{one.value: one for one in EmbedProvider}}
    if named not in known:
        raise InvalidRequest(f"The embedder provider {named!r} is not known; give one of {', '.join(sorted(known))}")
    return Settings(
        data_dir=database.parent,
        database_name=database.name,
        embed_provider=known[named],
        embed_model=model,
        embed_base_url=None,
        ollama_base_url=ollama_host,
    )
