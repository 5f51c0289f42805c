"""A database that lost commits is recognised, and indexes of another history are not used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import apsw
import pytest

from souvenir.command_line import main
from souvenir.core.errors import StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.store.sqlite.generations import marker_path, read_marker
from souvenir.store.sqlite.restore import restore_offline
from tests.fake_embedder import FakeEmbedder

SCOPE = Scope()
Open = Callable[[], MemoryEngine]


@pytest.fixture
def open_engine(settings: Settings) -> Iterator[Open]:
    """Opens the folder of `settings`; engines that a test leaves open are closed."""
    with ExitStack() as opened:

        def open_it() -> MemoryEngine:
            engine = opened.enter_context(closing(MemoryEngine.open(settings, FakeEmbedder())))
            engine.warm_up()
            return engine

        yield open_it


def add(engine: MemoryEngine, *texts: str) -> list[int]:
    return engine.add_batch(SCOPE, [MemoryDraft(text, "notes") for text in texts])


def words(name: str, count: int) -> list[str]:
    return [f"{name}{number} of the garden" for number in range(count)]


def not_found(engine: MemoryEngine, texts: list[str]) -> list[str]:
    """Return the texts that a search for them does not return first."""
    firsts = ((text, engine.search(SCOPE, SearchQuery(text)).hits) for text in texts)
    return [text for text, hits in firsts if not hits or hits[0].memory.text != text]


def codes(engine: MemoryEngine) -> list[str]:
    return [warning.code for warning in engine.readiness().warnings]


def test_new_memories_are_found_after_an_older_copy_was_put_back_by_hand(
    settings: Settings, open_engine: Open, tmp_path: Path
):
    engine = open_engine()
    add(engine, *words("old", 10))
    engine.close()
    shutil.copyfile(settings.database_path, tmp_path / "copy.db")
    engine = open_engine()
    add(engine, *words("gone", 60))
    engine.close()
    shutil.copyfile(tmp_path / "copy.db", settings.database_path)
    engine = open_engine()
    new = words("new", 60)
    add(engine, *new)
    assert not_found(engine, new) == []
    [warning] = engine.readiness().warnings
    assert warning.code == "commits_missing"
    assert "memories with the ids 11 to 70" in warning.message
    assert [problem for problem in engine.check() if "acknowledged commits are missing" not in problem] == []


def test_a_snapshot_of_a_branch_of_the_history_is_not_used(settings: Settings, open_engine: Open, tmp_path: Path):
    """Two folders continue from one copy, and the database of one is put into the folder of the other.

    The snapshots there are of fewer commits than that database has.
    """
    engine = open_engine()
    add(engine, "the common beginning")
    engine.close()
    branch = Settings(data_dir=tmp_path / "branch")
    shutil.copytree(settings.data_dir, branch.data_dir)
    engine = open_engine()
    add(engine, *words("one", 20))
    engine.close()
    with closing(MemoryEngine.open(branch, FakeEmbedder())) as other:
        for text in words("other", 40):
            add(other, text)
    shutil.copyfile(branch.database_path, settings.database_path)
    engine = open_engine()
    assert not_found(engine, words("other", 40)) == []
    assert codes(engine) == ["commits_missing"]


def cut_log(settings: Settings, keep: float) -> None:
    log = settings.database_path.with_name("souvenir.db-wal")
    os.truncate(log, int(log.stat().st_size * keep))


def abandoned(settings: Settings, tmp_path: Path, texts: list[str]) -> Settings:
    """Return a folder as a kill leaves it, with the texts in the log of the database, one commit each."""
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        for text in texts:
            add(engine, text)
        left = Settings(data_dir=tmp_path / "left")
        shutil.copytree(settings.data_dir, left.data_dir)
    return left


def test_a_log_that_lost_its_end_is_reported_until_the_loss_is_accepted(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    texts = words("note", 30)
    left = abandoned(settings, tmp_path, texts)
    cut_log(left, 0.5)
    for _ in range(2):
        with closing(MemoryEngine.open(left, FakeEmbedder())) as engine:
            engine.warm_up()
            stored = engine.page(SCOPE, offset=0, limit=100).memories
            assert 0 < len(stored) < 30
            [warning] = engine.readiness().warnings
            assert f"memories with the ids {len(stored) + 1} to 30" in warning.message
            assert warning.message in engine.check()
    assert len(list(left.data_dir.glob("souvenir.db-wal.replaced-*"))) == 1
    monkeypatch.setenv("DATA_DIR", str(left.data_dir))
    assert main(["accept-loss"]) == 0
    assert "1 losses accepted" in capsys.readouterr().out
    with closing(MemoryEngine.open(left, FakeEmbedder())) as engine:
        assert engine.readiness().warnings == ()
        assert list(engine.check()) == []
        assert min(add(engine, "later")) > 30


def test_a_loss_is_seen_by_a_snapshot_where_the_marker_is_lost_too(settings: Settings, tmp_path: Path):
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        for text in words("note", 30):
            add(engine, text)
        engine.warm_up()
        engine.snapshot()
        left = Settings(data_dir=tmp_path / "left")
        shutil.copytree(settings.data_dir, left.data_dir)
    marker_path(left.database_path).unlink()
    cut_log(left, 0.5)
    with closing(MemoryEngine.open(left, FakeEmbedder())) as engine:
        assert codes(engine) == ["commits_missing"]
        engine.warm_up()
        stored = [memory.text for memory in engine.page(SCOPE, offset=0, limit=100).memories]
        assert not_found(engine, stored) == []


def test_a_kill_is_no_loss(settings: Settings, tmp_path: Path):
    left = abandoned(settings, tmp_path, words("note", 30))
    for _ in range(2):
        with closing(MemoryEngine.open(left, FakeEmbedder())) as engine:
            assert engine.page(SCOPE, offset=0, limit=100).total == 30
            assert engine.readiness().warnings == ()


def test_an_older_marker_is_no_loss(settings: Settings, open_engine: Open):
    """A power cut may leave an older one, since it is not synced with each commit."""
    engine = open_engine()
    add(engine, "one")
    marker = marker_path(settings.database_path)
    older = marker.read_bytes()
    add(engine, "two")
    engine.close()
    marker.write_bytes(older)
    assert codes(open_engine()) == []


@pytest.mark.parametrize("content", [b"", b"garbage", b"[] 0", b"\x00" * 512])
def test_an_unreadable_marker_is_replaced(settings: Settings, open_engine: Open, content: bytes):
    engine = open_engine()
    add(engine, "one")
    engine.close()
    marker = marker_path(settings.database_path)
    marker.write_bytes(content)
    assert codes(open_engine()) == []
    assert read_marker(marker) is not None


def test_restores_are_no_loss(settings: Settings, open_engine: Open):
    engine = open_engine()
    add(engine, "one")
    name = engine.back_up(reason="manual").name
    add(engine, *words("later", 20))
    engine.restore(name)
    assert codes(engine) == []
    engine.close()
    engine = open_engine()
    assert codes(engine) == []
    add(engine, *words("other", 20))
    assert not_found(engine, words("other", 20)) == []
    engine.close()
    restore_offline(settings, name)
    engine = open_engine()
    assert codes(engine) == []
    assert engine.page(SCOPE, offset=0, limit=100).total == 1


def test_a_marker_that_cannot_be_written_is_reported_and_stops_no_write(settings: Settings, open_engine: Open):
    open_engine().close()
    marker = marker_path(settings.database_path)
    marker.unlink()
    marker.mkdir()
    engine = open_engine()
    add(engine, "one")
    assert codes(engine) == ["commit_marker_unwritable"]


def test_a_database_that_is_missing_next_to_its_marker_is_not_replaced_by_an_empty_one(
    settings: Settings, open_engine: Open
):
    open_engine().close()
    settings.database_path.unlink()
    with pytest.raises(StoreUnusable, match="is missing although"):
        open_engine()


def test_commits_that_change_nothing_are_not_numbered(settings: Settings, open_engine: Open):
    engine = open_engine()
    add(engine, "one")
    marked = read_marker(marker_path(settings.database_path))
    engine.write_rows(lambda connection: connection.execute("SELECT count(*) FROM memories").get)
    assert read_marker(marker_path(settings.database_path)) == marked
    add(engine, "two")
    after = read_marker(marker_path(settings.database_path))
    assert marked is not None
    assert after is not None
    assert after.commit == (marked.generation, marked.number + 1)


def test_each_run_that_writes_is_a_generation(settings: Settings, open_engine: Open):
    for text in ("one", "two", None):
        engine = open_engine()
        if text is not None:
            add(engine, text)
        engine.close()
    connection = apsw.Connection(str(settings.database_path), flags=apsw.SQLITE_OPEN_READONLY)
    rows = list(connection.execute("SELECT first_commit, last_commit FROM generations ORDER BY 1"))
    connection.close()
    assert rows == [(1, 1), (2, 2), (3, 3)]


def test_ids_are_not_issued_again_after_losses_of_the_whole_log(settings: Settings, tmp_path: Path):
    """The record of the first loss is lost with the log too, and the messages name lost rows only."""
    MemoryEngine.open(settings, FakeEmbedder()).close()
    folder, issued, messages = settings, list[int](), list[str]()
    for number in range(3):
        with closing(MemoryEngine.open(folder, FakeEmbedder())) as engine:
            messages = [warning.message for warning in engine.readiness().warnings]
            issued += add(engine, f"first {number}", f"second {number}")
            following = Settings(data_dir=tmp_path / f"left {number}")
            shutil.copytree(folder.data_dir, following.data_dir)
        following.database_path.with_name("souvenir.db-wal").unlink()
        folder = following
    assert len(set(issued)) == len(issued) == 6
    assert "memories with the ids 1 to 4," in messages[0]
    assert "messages" not in messages[0]


@pytest.mark.parametrize("command", [["accept-loss"], ["repair-ids"], ["check"], ["check", "--repair"]])
def test_each_command_finds_a_loss_and_keeps_the_log(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
):
    left = abandoned(settings, tmp_path, words("note", 30))
    cut_log(left, 0.5)
    monkeypatch.setenv("DATA_DIR", str(left.data_dir))
    monkeypatch.setattr("souvenir.command_line.chosen_model", lambda _: (FakeEmbedder(), None))
    main(command)
    printed = capsys.readouterr().out
    assert len(list(left.data_dir.glob("souvenir.db-wal.replaced-*"))) == 1
    with closing(MemoryEngine.open(left, FakeEmbedder())) as engine:
        assert codes(engine) == ([] if command == ["accept-loss"] else ["commits_missing"])
    assert list((left.data_dir).glob("backups/*")) == []
    if command != ["repair-ids"]:
        assert "acknowledged commits are missing" in printed
    if command[0] == "check":
        assert "`python app.py check --repair`" not in printed


@pytest.mark.parametrize("command", [["accept-loss"], ["repair-ids"], ["check"], ["check", "--repair"]])
def test_no_command_makes_a_store_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
):
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "typo"))
    assert main(command) == 1
    assert "does not exist; set DATA_DIR" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()
