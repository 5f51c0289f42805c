"""Checksums follow every write, and find rows that changed behind the service's back."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.errors import StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, MessageRole, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import MessageDraft, MessageFilter
from souvenir.store.sqlite import checksums
from souvenir.store.sqlite.checksums import COVERED, Covered, Difference, State
from souvenir.store.sqlite.connections import open_writer
from souvenir.store.sqlite.restore import open_copy
from souvenir.store.sqlite.schema import migrate
from tests.fake_embedder import FakeEmbedder
from tests.store.damage import behind_the_back, overwrite, overwrite_bytes
from tests.store.make_database import DATABASES
from tests.thoroughness import sampled

AGENT = Scope("ann")
FLIPS = sampled(10, 30)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A stopped store with an example of everything."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("filled"))
    shutil.copyfile(DATABASES / "v10.db", settings.database_path)
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        for number in range(20):
            draft = MemoryDraft(f"The violin{number} plays in room{number}", "notes", tags=("music",))
            added = engine.add(Scope(), draft).id
            assert added is not None
            engine.update(Scope(), added, MemoryPatch(text=f"The viola{number} plays in room{number}"))
        said = [MessageDraft(MessageRole.USER, f"message{number} of the day") for number in range(20)]
        Conversations(engine).add(AGENT, said)
        assert list(engine.check()) == []
    return settings


@pytest.fixture
def stored(filled: Settings, tmp_path: Path) -> Settings:
    """A copy of it."""
    return Settings(data_dir=shutil.copytree(filled.data_dir, tmp_path / "data"))


def differences(connection: apsw.Connection) -> list[Difference]:
    return [one for covered in COVERED for one in checksums.differences(connection, covered.table)]


def checked(settings: Settings) -> list[str]:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        return list(engine.check())


@pytest.mark.parametrize("covered", COVERED, ids=lambda covered: str(covered.table))
def test_the_triggers_in_the_database_are_those_of_the_covered_columns(covered: Covered, filled: Settings):
    with closing(open_writer(filled.database_path)) as connection:
        found = set(
            connection.execute(
                "SELECT sql || ';' FROM sqlite_schema WHERE type = 'trigger' AND name LIKE ? || '_checksum_%'",
                (covered.table,),
            )
        )
        assert {sql for (sql,) in found} == set(covered.triggers())
        columns = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (covered.table,))}
        assert set(covered.columns) <= columns


def test_every_operation_keeps_the_checksums(stored: Settings):
    """The erasure, renumbering and job tests check the same through `engine.check`."""
    with closing(MemoryEngine.open(stored, FakeEmbedder())) as engine:
        backup = engine.back_up(reason="manual").name
        ids = [memory.id for memory in engine.page(Scope(), offset=0, limit=100).memories]
        engine.merge(Scope(), ids[-2:], text="both violas", source="notes")
        engine.archive(Scope(), ids[-3:-2])
        engine.delete_many(Scope(), ids[-6:-4])
        conversations = Conversations(engine)
        [first, *_] = conversations.page(AGENT, MessageFilter())[0]
        conversations.edit(AGENT, first.uid, content="another message")
        assert list(engine.check()) == []
        engine.restore(backup)
        assert list(engine.check()) == []


@pytest.mark.parametrize(
    ("table", "column", "value", "where"),
    [
        ("memories", "text", "text || '.'", "id = 2"),
        ("messages", "content", "content || '.'", "id = 2"),
        ("messages", "position", "position + 1000", "id = 2"),
        ("passages", "profile", "profile + 1", "id = 3"),
        ("vectors", "vector", "CAST(x'01' || substr(vector, 2) AS BLOB)", "passage_id = 3"),
        ("history", "actor", "'nobody'", "id = 4"),
        ("memory_tags", "added_at", "added_at + 1", "memory_id = (SELECT min(memory_id) FROM memory_tags)"),
        ("tombstones", "owner_id", "owner_id + 1", "1"),
        ("facts", "ordinal", "7", "id = (SELECT min(id) FROM facts)"),
        ("sessions", "title", "'other'", "id = 1"),
    ],
)
def test_a_changed_row_is_found_and_named(stored: Settings, table: str, column: str, value: str, where: str):
    with closing(open_writer(stored.database_path)) as connection:
        connection.execute("INSERT INTO tombstones VALUES ('memory', 999, 1)")
        assert differences(connection) == []
    assert overwrite(stored.database_path, table, column, value, where=where)
    with closing(open_writer(stored.database_path)) as connection:
        found = differences(connection)
        assert [(one.table, one.state) for one in found] == [(table, State.CHANGED)]
        assert len(checksums.accept(connection)) == 1
        assert differences(connection) == []
    assert "is not as it was written" in found[0].sentence


def test_a_row_that_vanished_is_found(stored: Settings):
    with behind_the_back(stored.database_path) as connection:
        connection.execute("DELETE FROM history WHERE id = 4")
    assert "history 4 is missing although it was not deleted" in checked(stored)


def test_a_change_of_a_damaged_row_does_not_hide_the_damage(stored: Settings):
    assert overwrite(stored.database_path, "memories", "text", "'other'", where="id = 2") == 1
    with closing(MemoryEngine.open(stored, FakeEmbedder())) as engine:
        engine.update(Scope(), 2, MemoryPatch(pinned=True))
        assert "memories 2 is not as it was written" in engine.check()


def test_overwritten_text_is_found_in_the_file(stored: Settings):
    assert overwrite_bytes(stored.database_path, b"message7 of", b"message\xff of") >= 1
    found = checked(stored)
    assert any(one.startswith("messages ") and one.endswith(" cannot be read") for one in found)
    assert any(one.startswith("passages ") for one in found)


def test_copies_and_migrated_databases_have_the_function(tmp_path: Path):
    shutil.copyfile(DATABASES / "v9.db", tmp_path / "old.db")
    with closing(open_copy(tmp_path / "old.db")) as connection:
        migrate(connection)
        assert differences(connection) == []
        connection.execute("UPDATE memories SET text = text || '.'")
        assert differences(connection) == []


@pytest.mark.parametrize("seed", range(FLIPS))
def test_flipped_bits_are_found_or_refused_and_the_rest_is_served(stored: Settings, seed: int):
    """One flipped bit in a cell of a table's leaf page: found by a checksum, by a rule, or by SQLite."""
    flip(stored.database_path, random.Random(seed))
    try:
        engine = MemoryEngine.open(stored, FakeEmbedder())
    except StoreUnusable:
        return
    with closing(engine):
        assert list(engine.check()) != []
        with engine.namespace(Scope()) as (connection, _):
            rows = connection.execute("SELECT count(*) FROM memories").get
        assert len(engine.page(Scope(), offset=0, limit=100).memories) + 1 >= engine.count(Scope())
        assert rows >= engine.count(Scope())


def flip(path: Path, chosen: random.Random) -> None:
    """Flip a bit inside of the cells of a leaf page of a covered table."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("wal_checkpoint", "truncate")
        size = int(connection.pragma("page_size"))
        table = chosen.choice(["memories", "messages", "passages", "vectors", "history", "facts", "memory_tags"])
        root = int(connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get)
    content = bytearray(path.read_bytes())
    pages = list(leaves(content, size, root))
    page = chosen.choice(pages)
    begin = page_begin(content, size, page)
    at = chosen.randrange(begin, page * size)
    content[at] ^= 1 << chosen.randrange(8)
    path.write_bytes(content)


def leaves(content: bytes | bytearray, size: int, page: int) -> list[int]:
    """Return the leaf pages of a b-tree."""
    at = (page - 1) * size
    kind = content[at]
    if kind in (10, 13):
        return [page]
    cells = int.from_bytes(content[at + 3 : at + 5], "big")
    children = [int.from_bytes(content[at + 8 : at + 12], "big")]
    for number in range(cells):
        pointer = at + 12 + 2 * number
        cell = at + int.from_bytes(content[pointer : pointer + 2], "big")
        children.append(int.from_bytes(content[cell : cell + 4], "big"))
    return [leaf for child in children for leaf in leaves(content, size, child)]


def page_begin(content: bytes | bytearray, size: int, page: int) -> int:
    """Return where the cells of a leaf page begin."""
    at = (page - 1) * size
    return at + (int.from_bytes(content[at + 5 : at + 7], "big") or 65_536)
