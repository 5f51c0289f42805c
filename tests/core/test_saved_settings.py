"""The saved settings file: its precedence, setting names, and errors."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from app import create_app, main
from souvenir.core.errors import SavedSettingsUnusable, StoreUnusable
from souvenir.core.settings import EmbedProvider, ExtractProvider, Settings
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder


def save(path: Path, **said: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(said), encoding="utf-8")
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with the default settings file."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CONFIG_FILE")
    return tmp_path / "home"


def test_the_environment_precedes_dotenv_which_precedes_the_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    save(home / ".souvenir" / "config.json", port=1, host="one", max_backups=11)
    (tmp_path / "dotenv").write_text("PORT=2\nHOST=two\n", encoding="utf-8")
    monkeypatch.setitem(Settings.model_config, "env_file", tmp_path / "dotenv")
    # By another name: what it is called does not decide.
    monkeypatch.setenv("MEMORY_SERVER_PORT", "3")
    settings = Settings()
    assert (settings.port, settings.host, settings.max_backups, settings.max_searches) == (3, "two", 11, 0)


def test_dotenv_may_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CONFIG_FILE")
    named = save(tmp_path / "named.json", port=7)
    (tmp_path / "dotenv").write_text(f"CONFIG_FILE={named}\n", encoding="utf-8")
    monkeypatch.setitem(Settings.model_config, "env_file", tmp_path / "dotenv")
    assert Settings().port == 7


@pytest.mark.parametrize(
    "name", ["db_path", "DB_PATH", "Db_Path", "dbPath", "sqlite_path", "SQLITE_PATH", "sqlitePath"]
)
def test_setting_names_are_recognised_in_any_style(tmp_path: Path, name: str):
    named = save(tmp_path / "config.json", **{name: "~/one/memory.db"})
    settings = Settings(config_file=named)
    assert settings.database_path == Path.home() / "one" / "memory.db"
    assert settings.data_dir == Path.home() / "one"
    assert settings.unknown_saved() == []


def test_the_file_of_a_memory_server_that_uses_openai_can_be_named(tmp_path: Path):
    named = save(
        tmp_path / "config.json",
        sqlitePath="~/.mcp-local-memory/memory.db",
        userId="ana",
        openaiApiKey="sk-1",
        model="gpt-4o-mini",
        embeddingModel="text-embedding-3-small",
    )
    settings = Settings(config_file=named)
    assert settings.database_path == Path.home() / ".mcp-local-memory" / "memory.db"
    assert settings.mcp_namespace == "ana"
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == "sk-1"
    assert (settings.embed_provider, settings.embed_model) == (EmbedProvider.OPENAI, "text-embedding-3-small")
    assert (settings.extract_provider, settings.extract_model) == (ExtractProvider.OPENAI, "gpt-4o-mini")
    assert settings.unknown_saved() == []


def test_empty_values_in_the_file_are_ignored(tmp_path: Path):
    settings = Settings(config_file=save(tmp_path / "config.json", openaiApiKey="", api_key=None, model="", port="81"))
    assert (settings.openai_api_key, settings.api_key, settings.extract_provider) == (None, None, None)
    assert settings.port == 81


def test_a_tilde_is_expanded_in_every_path_setting(monkeypatch: pytest.MonkeyPatch):
    for name in ("DATA_DIR", "DB_PATH", "WORKSPACE_DIR", "PRIVACY_CONFIG"):
        monkeypatch.setenv(name, "~/there")
    settings = Settings()
    there = Path.home() / "there"
    paths = (settings.data_dir, settings.db_path, settings.workspace_dir, settings.privacy_rules_path)
    assert paths == (there, there, there, there)
    monkeypatch.setenv("DATA_DIR", "~nobody-has-this-name/there")
    assert Settings().data_dir == Path("~nobody-has-this-name/there")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"port = 1", "not JSON"),
        (b"[1]", "no JSON object"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (None, "not there"),
    ],
)
def test_an_unreadable_file_stops_the_start_with_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
    told: str,
):
    named = tmp_path / "config.json"
    if content is not None:
        named.write_bytes(content)
    monkeypatch.setenv("CONFIG_FILE", str(named))
    assert main(["check"]) == 1
    [sentence] = capsys.readouterr().err.splitlines()
    assert str(named) in sentence
    assert told in sentence


def test_a_folder_is_refused_as_a_settings_file(tmp_path: Path):
    with pytest.raises(SavedSettingsUnusable, match="Is a directory"):
        Settings(config_file=tmp_path)


def test_without_a_file_the_defaults_apply(home: Path):
    assert Settings().port == 8900
    assert not home.exists()


def test_an_invalid_value_in_the_file_is_refused_like_one_in_the_environment(tmp_path: Path):
    with pytest.raises(ValidationError, match="port"):
        Settings(config_file=save(tmp_path / "config.json", port="many"))


def test_unknown_names_are_logged_without_their_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    named = save(tmp_path / "config.json", prot="s3cret", souvenir_url="http://elsewhere:1", PORT=0)
    with TestClient(create_app(Settings(config_file=named, data_dir=tmp_path / "data"), FakeEmbedder())):
        logged = capsys.readouterr().err
    [warned] = [line for line in logged.splitlines() if "unknown_setting" in line]
    assert "name=prot" in warned
    assert f"file={named}" in warned
    assert "s3cret" not in logged


def test_the_database_of_another_memory_server_is_refused_and_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    theirs = tmp_path / "memory.db"
    other = sqlite3.connect(tmp_path / "open.db")
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("CREATE TABLE memories (id TEXT, data TEXT)")
    other.commit()
    # As their server leaves it when it is killed: what it wrote last stands in the log beside the database.
    for suffix in ("", "-wal"):
        Path(f"{theirs}{suffix}").write_bytes(Path(f"{tmp_path / 'open.db'}{suffix}").read_bytes())
    other.close()
    before = {suffix: Path(f"{theirs}{suffix}").read_bytes() for suffix in ("", "-wal")}
    monkeypatch.setenv("SQLITE_PATH", str(theirs))
    with pytest.raises(StoreUnusable, match="another program; set DATA_DIR or DB_PATH"):
        MemoryEngine.open(Settings(), FakeEmbedder())
    assert {suffix: Path(f"{theirs}{suffix}").read_bytes() for suffix in ("", "-wal")} == before
