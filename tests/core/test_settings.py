"""Settings by the names of other systems, and their combinations."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from souvenir.core.errors import StoreUnusable
from souvenir.core.settings import EmbedProvider, Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder


def test_every_variable_of_a_local_memory_server_is_read(monkeypatch: pytest.MonkeyPatch):
    for name, value in {
        "MEMORY_SERVER_HOST": "0.0.0.0",
        "MEMORY_SERVER_PORT": "8283",
        "MEMORY_SERVER_DB_PATH": "~/.local-memory/memory.db",
        "MEMORY_EMBEDDING_BACKEND": "local",
        "MEMORY_EMBEDDING_MODEL": "org/model",
        "OLLAMA_BASE_URL": "http://gpu:11434",
        "MEMORY_DEFAULT_SEARCH_LIMIT": "3",
        "MEMORY_MAX_SEARCH_LIMIT": "30",
        "MEMORY_MAX_CONTEXT_MESSAGES": "7",
    }.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert (settings.host, settings.port) == ("0.0.0.0", 8283)
    assert settings.database_path == Path.home() / ".local-memory" / "memory.db"
    assert settings.data_dir == Path.home() / ".local-memory"
    assert (settings.embed_provider, settings.embed_model) == (EmbedProvider.ONNX, "org/model")
    assert settings.ollama_base_url == "http://gpu:11434"
    limits = settings.default_search_limit, settings.max_search_limit, settings.max_context_messages
    assert limits == (3, 30, 7)


def test_our_own_setting_names_take_precedence(monkeypatch: pytest.MonkeyPatch):
    for name, value in {"PORT": "1", "MEMORY_SERVER_PORT": "2", "DB_PATH": "a.db"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MEMORY_SERVER_DB_PATH", "b.db")
    assert (Settings().port, Settings().database_path) == (1, Path("a.db"))


def test_the_database_is_in_the_data_folder_unless_its_path_is_set(tmp_path: Path):
    assert Settings(data_dir=tmp_path).database_path == tmp_path / "souvenir.db"
    apart = Settings(data_dir=tmp_path / "data", db_path=tmp_path / "memory.db")
    assert (apart.database_path, apart.backup_dir) == (tmp_path / "memory.db", tmp_path / "data" / "backups")


def test_a_database_outside_of_its_data_folder_is_locked_too(tmp_path: Path):
    apart = Settings(data_dir=tmp_path / "data", db_path=tmp_path / "elsewhere" / "memory.db")
    other = Settings(data_dir=tmp_path / "other", db_path=apart.db_path)
    with closing(MemoryEngine.open(apart, FakeEmbedder())) as engine:
        added = engine.add(Scope(), MemoryDraft("red", "notes"))
        backup = engine.back_up(reason="manual")
        engine.add(Scope(), MemoryDraft("blue", "notes"))
        engine.restore(backup.name)
        assert [one.id for one in engine.page(Scope(), offset=0, limit=9).memories] == [added.id]
        with pytest.raises(StoreUnusable, match="Another process uses"):
            MemoryEngine.open(other, FakeEmbedder())
    assert apart.database_path.is_file()
