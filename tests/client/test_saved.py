"""The saved configuration file: below the environment in precedence, written atomically, readable by its owner only."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from souvenir.core.settings import Settings
from souvenir_client.calls import Address
from souvenir_client.hooks.events import Event
from souvenir_client.hooks.project import Project
from souvenir_client.saved import change, read, saved, saved_path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is read, which is not there yet."""
    monkeypatch.setenv("CONFIG_FILE", str(tmp_path / "new" / "config.json"))
    return tmp_path / "new" / "config.json"


def address() -> Address:
    return Address.of(None, None, None, 1.0, 0)


def test_the_environment_overrides_the_saved_file_which_overrides_the_default(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    assert (address().url, address().api_key) == ("http://127.0.0.1:8900", None)
    change(file, "souvenir_url", "http://saved:1")
    change(file, "souvenir_api_key", "saved-key")
    assert (address().url, address().api_key) == ("http://saved:1", "saved-key")
    monkeypatch.setenv("MEMORY_SERVER_URL", "http://named:2")
    monkeypatch.setenv("SOUVENIR_API_KEY", "named-key")
    assert (address().url, address().api_key) == ("http://named:2", "named-key")
    assert Address.of("http://given:3", "given", None, 1.0, 0).url == "http://given:3"


def test_a_hook_uses_the_saved_agent_unless_the_environment_names_one(file: Path):
    event = Event(session_id="s", cwd="/work/project")
    assert Project.of(event, {}).agent == "claude-code-project"
    change(file, "souvenir_agent", "ana")
    assert Project.of(event, {}).agent == "ana"
    assert Project.of(event, {"SOUVENIR_AGENT": "bo"}).agent == "bo"


def test_the_service_reads_the_saved_file_of_the_client(file: Path):
    change(file, "port", "1234")
    change(file, "souvenir_url", "http://saved:1")
    settings = Settings()
    assert (settings.port, settings.unknown_saved()) == (1234, [])


def test_the_saved_file_is_made_readable_by_its_owner_only(file: Path):
    change(file, "a", "1")
    file.chmod(0o644)
    assert change(file, "b", "2")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(file.parent.iterdir()) == [file]


def test_names_are_case_insensitive_and_other_lines_are_preserved(file: Path):
    file.parent.mkdir()
    file.write_text(json.dumps({"PORT": 1, "sqlitePath": "~/a.db", "names": ["ä"]}), encoding="utf-8")
    change(file, "port", "2")
    assert json.loads(file.read_text(encoding="utf-8")) == {"sqlitePath": "~/a.db", "names": ["ä"], "port": "2"}
    assert not change(file, "port", "2")
    assert change(file, "Port", None)
    assert read(file) == {"sqlitepath": "~/a.db", "names": ["ä"]}


def test_a_symbolic_link_is_preserved(file: Path, tmp_path: Path):
    file.parent.mkdir()
    (tmp_path / "real.json").write_text("{}", encoding="utf-8")
    file.symlink_to(tmp_path / "real.json")
    change(file, "port", "2")
    assert file.is_symlink()
    assert read(tmp_path / "real.json") == {"port": "2"}


@pytest.mark.parametrize("content", [b"port=1", b"[]", b"\xff\xfe", b"[" * 100_000])
def test_an_unreadable_file_is_reported_and_never_overwritten(file: Path, content: bytes):
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.raises(ValueError, match="CONFIG_FILE"):
        change(file, "port", "2")
    with pytest.raises(ValueError, match="CONFIG_FILE"):
        address()
    assert file.read_bytes() == content


def test_a_concurrent_reader_sees_the_old_or_the_new_file(file: Path):
    change(file, "souvenir_url", "0" * 100_000)
    seen, done = set(), threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(len(saved("souvenir_url") or ""))

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(1, 50):
        change(file, "souvenir_url", str(number % 10) * (100_000 + number % 2))
    done.set()
    reader.join()
    assert seen <= {100_000, 100_001}


def test_a_tilde_expands_to_the_home_folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CONFIG_FILE", "~/here.json")
    assert saved_path() == Path.home() / "here.json"
    monkeypatch.setenv("CONFIG_FILE", "")
    assert saved_path() == Path.home() / ".souvenir" / "config.json"
