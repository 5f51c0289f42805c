"""Damaged rows are repaired from their second copies, proven by their checksums; the rest stays reported."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from souvenir.command_line import main
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, MessageRole, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import chosen_model
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.sqlite import checksums
from souvenir.store.sqlite.repair import most_similar_part, rebuild_indexes
from tests.fake_embedder import FakeTokenEmbedder
from tests.store.damage import behind_the_back, overwrite

AGENT = Scope("ann")
NOT_UTF8 = "CAST(x'ff' || substr(CAST({} AS BLOB), 2) AS TEXT)"
LONG = " ".join(f"Sentence {number} of a long report." for number in range(60))
OF_LONG = "SELECT id FROM memories WHERE text LIKE 'Sentence 0%'"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A stopped store with memories, facts, tags and messages."""
    found = Settings(data_dir=tmp_path)
    with closing(opened(found)) as engine:
        for number in range(5):
            facts = (f"fact number{number}", f"Ann counts to number{number}")
            added = engine.add(Scope(), MemoryDraft(f"memory number{number}", "notes", {"n": number}, facts=facts)).id
            assert added is not None
            engine.update(Scope(), added, MemoryPatch(add_tags=("counted",)))
        engine.add(Scope(), MemoryDraft(LONG, "reports"))
        said = [MessageDraft(MessageRole.USER, f"message number{number}", {"n": number}) for number in range(5)]
        Conversations(engine).add(AGENT, said)
    return found


def opened(settings: Settings) -> MemoryEngine:
    return MemoryEngine.open(settings, FakeTokenEmbedder())


@pytest.fixture
def whole(settings: Settings) -> dict[str, list[tuple[object, ...]]]:
    """The rows as they were written."""
    return rows_of(settings)


def rows_of(settings: Settings) -> dict[str, list[tuple[object, ...]]]:
    # As bytes, since damaged texts cannot be read.
    with behind_the_back(settings.database_path) as connection:
        return {
            covered.table: list(
                connection.execute(
                    f"SELECT {', '.join(f'CAST({column} AS BLOB)' for column in covered.columns)} "
                    f"FROM {covered.table} ORDER BY 1, 2"
                )
            )
            for covered in checksums.COVERED
            if covered.table not in ("namespaces", "vectors")
        }


def repaired(settings: Settings) -> tuple[list[str], list[str]]:
    """Return what was done, and what remains."""
    with closing(opened(settings)) as engine:
        assert list(engine.check()) != []
        done = list(engine.repair())
        return done, list(engine.check())


@pytest.mark.parametrize(
    ("table", "column", "value", "where"),
    [
        ("memories", "text", NOT_UTF8.format("text"), "id = 2"),
        ("memories", "text", "'a changed text'", "id = 2"),
        ("memories", "metadata", "'{'", "id = 2"),
        ("memories", "origin_class", "'nobody'", "id = 2"),
        ("memories", "created_at", str(2**62), "id = 2"),
        ("messages", "content", NOT_UTF8.format("content"), "id = 2"),
        ("messages", "position", "position + 1000", "id = 2"),
        ("messages", "role", "'nobody'", "id = 2"),
        ("facts", "text", NOT_UTF8.format("text"), "id = 2"),
        ("facts", "ordinal", "ordinal + 7", "id = 2"),
        ("passages", "text", NOT_UTF8.format("text"), "kind = 'message' AND owner_id = 2"),
        ("passages", "profile", "profile + 1", "kind = 'message' AND owner_id = 2"),
        ("passages", "text", "replace(text, 'report', 'repost')", f"owner_id IN ({OF_LONG}) AND ordinal = 1"),
        ("passages", "archived", "1", "kind = 'memory' AND owner_id = 2"),
        ("history", "after", NOT_UTF8.format("after"), "id = 3"),
        ("history", "before", "'{}'", "id = 4"),
    ],
)
def test_a_row_with_a_second_copy_is_restored_exactly(
    settings: Settings, whole: object, table: str, column: str, value: str, where: str
):
    assert overwrite(settings.database_path, table, column, value, where=where) >= 1
    assert rows_of(settings) != whole
    done, remain = repaired(settings)
    assert remain == []
    assert done[0].startswith("The state before the repair is in the backup pre_repair_")
    assert any(one.startswith(f"{table} ") and "proves" in one for one in done)
    assert rows_of(settings) == whole


@pytest.mark.parametrize(
    "damage", ["UPDATE vectors SET vector = zeroblob(7)", "UPDATE vectors SET tokens = x'01'", "DELETE FROM vectors"]
)
def test_vectors_are_made_again(settings: Settings, whole: object, damage: str):
    with behind_the_back(settings.database_path) as connection:
        connection.execute(f"{damage} WHERE passage_id IN (2, 3)")
    _, remain = repaired(settings)
    assert remain == []
    with closing(opened(settings)) as engine:
        found = engine.search(Scope(), SearchQuery("memory number1", 1)).hits
        assert [hit.memory.text for hit in found] == ["memory number1"]
        assert list(engine.check()) == []


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("messages", "UPDATE messages SET metadata = '{\"n\":7}' WHERE id = 2"),
        ("users", "DELETE FROM history WHERE id = 3"),
        ("memory_tags", "UPDATE memory_tags SET tag = 'other' WHERE memory_id = 2"),
        ("sessions", "UPDATE sessions SET title = 'other' WHERE id = 1"),
    ],
)
def test_a_row_without_a_second_copy_comes_from_a_backup(settings: Settings, whole: object, table: str, change: str):
    with closing(opened(settings)) as engine:
        backup = engine.back_up(reason="manual").name
        engine.add(Scope(), MemoryDraft("written after the backup", "notes"))
    whole = rows_of(settings)
    with behind_the_back(settings.database_path) as connection:
        connection.execute(change)
    done, remain = repaired(settings)
    assert remain == []
    assert any(f"was restored from the backup {backup}" in one for one in done)
    assert rows_of(settings) == whole


def test_a_row_without_any_copy_stays_and_is_reported_until_it_is_accepted(settings: Settings):
    changed = "UPDATE messages SET metadata = '{\"n\":7}' WHERE id = 2"
    with behind_the_back(settings.database_path) as connection:
        connection.execute(changed)
    done, remain = repaired(settings)
    assert not any("messages" in one for one in done)
    assert remain == ["messages 2 is not as it was written"]
    with closing(opened(settings)) as engine:
        engine.write_rows(checksums.accept)
        assert list(engine.check()) == []


def test_counters_are_computed_again(settings: Settings):
    with behind_the_back(settings.database_path) as connection:
        connection.execute("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'memories'")
        connection.execute("UPDATE sessions SET next_position = 1")
    done, remain = repaired(settings)
    assert remain == []
    assert "the id counters were computed again" in done
    assert "the next positions of sessions were computed again" in done


def test_indexes_of_the_database_that_do_not_fit_their_tables_are_rebuilt(settings: Settings):
    names = ("memories_by_source", "passages_by_namespace")
    with behind_the_back(settings.database_path) as connection:
        connection.pragma("writable_schema", True)
        root = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        pages = [connection.execute(root, (name,)).get for name in names]
        for name, page in zip(names, reversed(pages), strict=True):
            connection.execute("UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", (page, name))
        connection.pragma("writable_schema", False)
    with pytest.raises(StoreUnusable):
        opened(settings)
    [done] = rebuild_indexes(settings)
    assert done.startswith("SQLite's indexes were rebuilt; the state before is in the backup pre_repair_")
    assert rebuild_indexes(settings) == []
    with closing(opened(settings)) as engine:
        assert list(engine.check()) == []


def test_the_command_repairs_and_names_what_to_run_next(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    data = tmp_path / "copy"
    data.mkdir()
    with closing(MemoryEngine.open(Settings(data_dir=data), chosen_model(Settings())[0])) as engine:
        engine.add(Scope(), MemoryDraft("memory number1", "notes"))
    overwrite(data / "souvenir.db", "memories", "text", "'other'", where="id = 1")
    monkeypatch.setenv("DATA_DIR", str(data))
    assert main(["check"]) == 1
    said = capsys.readouterr().out
    assert "memories 1 is not as it was written" in said
    assert said.rstrip().endswith("run `python app.py check --repair`")
    assert main(["check", "--repair"]) == 0
    assert "is sound" in capsys.readouterr().out
    assert main(["check"]) == 0
    shutil.rmtree(data)


def test_the_most_similar_part_of_a_text_is_found():
    assert most_similar_part("one two three four", b"t\xffree") == "three"
    assert most_similar_part("short", b"much longer") == "short"
    assert most_similar_part("whole", b"w\xffole") == "whole"
