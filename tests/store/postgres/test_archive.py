"""An archive is the whole store: exported, imported into either engine and exported again, its bytes are the same."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from souvenir.command_line import main
from souvenir.core.errors import InvalidRequest, StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.store.sqlite.locks import lock_folder
from souvenir.transfer import archive, migration_rows
from souvenir.transfer.archive import export_archive, import_archive
from souvenir.transfer.archive_signature import KEY_NAME
from souvenir.transfer.migration_rows import tables
from tests.fake_embedder import FakeEmbedder
from tests.store.damage import overwrite
from tests.store.postgres.moved_stores import answers_of, fill_empty_tables, make_store, rows_of

FORGOTTEN = "a sentence about a zebraquartz that was erased"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "data"
    make_store(folder)
    with closing(MemoryEngine.open(Settings(data_dir=folder), FakeEmbedder())) as engine:
        erased = engine.add(Scope(), MemoryDraft(FORGOTTEN, "notes")).id
        assert erased is not None
        engine.delete(Scope(), erased)
    fill_empty_tables(folder)
    return folder


@pytest.fixture(scope="module")
def made(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archives") / "all.jsonl"
    export(stored, path)
    return path


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    for path in (made, signature_of(made)):
        shutil.copy(path, tmp_path / path.name)
    return tmp_path / made.name


@pytest.fixture
def url(server_address: str) -> str:
    """An empty database of its own."""
    with psycopg.connect(server_address, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS archived WITH (FORCE)")
        connection.execute("CREATE DATABASE archived")
    return server_address.replace("/postgres?", "/archived?")


def export(folder: Path, path: Path) -> list[str]:
    said: list[str] = []
    export_archive(Settings(data_dir=folder), path, said.append)
    return said


def fill(folder: Path, path: Path, *, public_key: str | None = None, unsigned: bool = False) -> list[str]:
    said: list[str] = []
    import_archive(Settings(data_dir=folder), path, said.append, public_key=public_key, unsigned=unsigned)
    return said


def signature_of(path: Path) -> Path:
    return path.with_name(path.name + ".sig")


def change_lines(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    signature_of(path).unlink()
    path.write_bytes(b"\n".join(change(path.read_bytes().splitlines())) + b"\n")


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_an_export_of_an_import_has_the_same_bytes(stored: Path, made: Path, tmp_path: Path):
    before = rows_of(stored)
    said = fill(tmp_path / "new", made)
    assert said[-1].endswith("all compared")
    assert rows_of(tmp_path / "new") == before
    export(tmp_path / "new", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == made.read_bytes()


def test_an_import_into_postgresql_and_back_has_the_same_bytes(made: Path, url: str, tmp_path: Path):
    in_postgres = Settings(data_dir=tmp_path / "replica", database_url=SecretStr(url))
    import_archive(in_postgres, made, print, public_key=None, unsigned=False)
    export_archive(in_postgres, tmp_path / "again.jsonl", print)
    assert (tmp_path / "again.jsonl").read_bytes() == made.read_bytes()


def test_an_imported_store_answers_as_the_first_and_stays_the_same_in_use(tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "second"
    make_store(first)
    expected = answers_of(str(first), tmp_path)
    export(first, tmp_path / "all.jsonl")
    fill(second, tmp_path / "all.jsonl")
    assert answers_of(str(second), tmp_path) == expected
    export(second, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()


def test_the_archive_has_every_table_and_row_in_a_form_that_any_program_reads(stored: Path, made: Path):
    header, *lines, end = lines_of(made)
    assert header["souvenir_archive"] == archive.FORMAT
    found: dict[str, int] = {}
    left = 0
    for line in lines:
        if isinstance(line, dict):
            table = line["table"]
            found[table] = line["rows"]
            left = line["rows"]
        else:
            left -= 1
            assert left >= 0
    rows = rows_of(stored)
    assert found == {table.name: len(rows[table.name]) for table in tables()}
    assert end == {"end": sum(found.values())}


def test_what_was_erased_is_not_in_the_archive(made: Path):
    assert b"zebraquartz" not in made.read_bytes()


def test_ids_of_deleted_rows_are_not_given_again(made: Path, tmp_path: Path):
    fill(tmp_path / "new", made)
    last = lines_of(made)[0]["counters"]["memories"]
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path / "new"), FakeEmbedder())) as engine:
        new = engine.add(Scope(), MemoryDraft("new", "x")).id
        assert new is not None
        assert new > last
        assert engine.search(Scope(), SearchQuery("new")).hits[0].memory.id == new


def test_small_pages_change_nothing(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive, "PAGE_BYTES", 1)
    monkeypatch.setattr(migration_rows, "FIRST_PAGE_ROWS", 2)
    monkeypatch.setattr(migration_rows, "MAX_PAGE_ROWS", 2)
    fill(tmp_path / "new", made)
    export(tmp_path / "new", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == made.read_bytes()


def test_a_value_of_another_type_than_its_column_is_named_if_postgresql_refuses_it(
    copied: Path, url: str, tmp_path: Path
):
    change_lines(copied, lambda lines: [*lines[:2], b'["x"' + lines[2][lines[2].index(b",") :], *lines[3:]])
    in_postgres = Settings(data_dir=tmp_path / "replica", database_url=SecretStr(url))
    with pytest.raises(StoreUnusable, match="PostgreSQL cannot store the row"):
        import_archive(in_postgres, copied, print, public_key=None, unsigned=True)


def test_a_file_that_a_killed_export_left_is_replaced_by_a_private_one(stored: Path, tmp_path: Path):
    (tmp_path / "others").write_text("")
    (tmp_path / "all.jsonl.partial").symlink_to(tmp_path / "others")
    export(stored, tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o077 == 0
    assert (tmp_path / "others").read_text() == ""


def test_an_archive_without_its_signature_never_stands(stored: Path, tmp_path: Path):
    folder = Path(shutil.copytree(stored, tmp_path / "source"))
    (folder / KEY_NAME).write_text("no key")
    with pytest.raises(StoreUnusable, match=r"The key .* cannot be read"):
        export(folder, tmp_path / "all.jsonl")
    assert list(tmp_path.glob("all*")) == []


# --- the signature ---------------------------------------------------------------------------------------------------


def test_the_signature_is_by_the_key_of_the_installation(stored: Path, copied: Path, tmp_path: Path):
    key = json.loads(signature_of(copied).read_text())["public_key"]
    assert (stored / KEY_NAME).stat().st_mode & 0o077 == 0
    assert any(key in line for line in fill(tmp_path / "new", copied, public_key=key))
    with pytest.raises(InvalidRequest, match="was signed by the key"):
        fill(tmp_path / "other", copied, public_key="AAAA")


@pytest.mark.parametrize("place", [0.0, 0.5, 0.999])
def test_a_changed_archive_is_refused_and_nothing_is_stored(copied: Path, tmp_path: Path, place: float):
    content = bytearray(copied.read_bytes())
    content[int(place * len(content))] ^= 1
    copied.write_bytes(content)
    with pytest.raises(InvalidRequest, match="is not as it was signed"):
        fill(tmp_path / "new", copied)
    assert not (tmp_path / "new").exists()


def test_a_wrong_signature_is_refused_even_if_none_is_needed(copied: Path, tmp_path: Path):
    copied.write_bytes(copied.read_bytes() + b"\n")
    with pytest.raises(InvalidRequest, match="is not as it was signed"):
        fill(tmp_path / "new", copied, unsigned=True)


def test_an_archive_without_its_signature_needs_a_word(copied: Path, tmp_path: Path):
    signature_of(copied).unlink()
    with pytest.raises(InvalidRequest, match="--unsigned"):
        fill(tmp_path / "new", copied)
    assert fill(tmp_path / "new", copied, unsigned=True)[-1].endswith("all compared")


def test_a_demanded_key_needs_a_signature_even_if_others_do_not(copied: Path, tmp_path: Path):
    key = json.loads(signature_of(copied).read_text())["public_key"]
    signature_of(copied).unlink()
    with pytest.raises(InvalidRequest, match="is missing"):
        fill(tmp_path / "new", copied, public_key=key, unsigned=True)
    assert not (tmp_path / "new").exists()


def test_characters_that_base64_ignores_are_refused_in_a_signature(copied: Path, tmp_path: Path):
    content = json.loads(signature_of(copied).read_text())
    content["public_key"] = "\x1b[" + content["public_key"]
    signature_of(copied).write_text(json.dumps(content))
    with pytest.raises(InvalidRequest, match="is no signature"):
        fill(tmp_path / "new", copied)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"public_key": 7, "signature": ""}', "\0"])
def test_what_is_no_signature_is_refused(copied: Path, tmp_path: Path, content: str):
    signature_of(copied).write_text(content)
    with pytest.raises(InvalidRequest, match="is no signature"):
        fill(tmp_path / "new", copied)


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda lines: [lines[0].replace(b'"souvenir_archive":1', b'"souvenir_archive":2'), *lines[1:]], "no archive"),
        (lambda lines: [lines[0].replace(b'"schema":', b'"schema":1'), *lines[1:]], "with the schema"),
        (lambda lines: [b"[1]", *lines[1:]], "no archive"),
        (lambda lines: [b"", *lines], "no JSON"),
        (lambda lines: [lines[0].replace(b'"counters":', b'"counts":'), *lines[1:]], "the greatest id of each table"),
        (
            lambda lines: [lines[0].replace(b'"memories":', b'"memories":-'), *lines[1:]],
            "the greatest id of each table",
        ),
    ],
)
def test_what_is_no_archive_leaves_the_store_empty(copied: Path, tmp_path: Path, change: Any, part: str):
    change_lines(copied, change)
    with pytest.raises(InvalidRequest, match=part):
        fill(tmp_path / "new", copied, unsigned=True)
    MemoryEngine.open(Settings(data_dir=tmp_path / "new"), FakeEmbedder()).close()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda lines: lines[:-1], "is no JSON"),
        (lambda lines: [*lines, b'["more"]'], "should be the end"),
        (lambda lines: [*lines[:-1], b'{"end":1}'], "should be the end"),
        (lambda lines: [*lines[:1], *lines[2:]], "should begin the table"),
        (lambda lines: [*lines[:2], b"[1,2,3]", *lines[3:]], "should be a row"),
        (lambda lines: [*lines[:2], b"[" * 100_000, *lines[3:]], "is no JSON"),
        (lambda lines: [lines[0], lines[1].replace(b'"rows":', b'"rows":0.'), *lines[2:]], "number of its rows"),
        (lambda lines: [lines[0], lines[1].replace(b'"rows"', b'"row"'), *lines[2:]], "number of its rows"),
        *(
            (lambda lines, value=value: [*lines[:2], b"[" + value + lines[2][lines[2].index(b",") :], *lines[3:]], part)
            for value, part in [
                (b"true", "a value that no row has"),
                (b"[]", "a value that no row has"),
                (b'{"base64":5}', "a value that no row has"),
                (b'{"base64":"AAA"}', "a value that no row has"),
                (b'{"base64":"AA!!A="}', "a value that no row has"),
                (b"1e999", "a value that no row has"),
                (b"9223372036854775808", "an integer of more than 64 bits"),
                (b'"\\ud800"', "a value that no row has"),
            ]
        ),
    ],
)
def test_no_service_uses_the_part_of_a_broken_archive(copied: Path, tmp_path: Path, change: Any, part: str):
    change_lines(copied, change)
    with pytest.raises(InvalidRequest, match=part):
        fill(tmp_path / "new", copied, unsigned=True)
    with pytest.raises(StoreUnusable, match="unfinished"):
        MemoryEngine.open(Settings(data_dir=tmp_path / "new"), FakeEmbedder())
    with pytest.raises(StoreUnusable, match="unfinished"):
        fill(tmp_path / "new", copied, unsigned=True)


def test_a_store_with_rows_is_not_filled(stored: Path, made: Path, tmp_path: Path):
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path / "used"), FakeEmbedder())) as engine:
        engine.add(Scope(), MemoryDraft("mine", "x"))
    with pytest.raises(StoreUnusable, match="is not empty"):
        fill(tmp_path / "used", made)
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path / "used"), FakeEmbedder())) as engine:
        assert [hit.memory.text for hit in engine.search(Scope(), SearchQuery("mine")).hits] == ["mine"]


def test_a_store_in_use_is_neither_exported_nor_filled(stored: Path, made: Path, tmp_path: Path):
    (tmp_path / "new").mkdir(mode=0o700)
    with lock_folder(stored), pytest.raises(StoreUnusable, match="use"):
        export(stored, tmp_path / "again.jsonl")
    with lock_folder(tmp_path / "new"), pytest.raises(StoreUnusable, match="use"):
        fill(tmp_path / "new", made)
    assert not (tmp_path / "again.jsonl").exists()


def test_a_damaged_store_is_not_exported(stored: Path, tmp_path: Path):
    damaged = Path(shutil.copytree(stored, tmp_path / "damaged"))
    assert overwrite(damaged / "souvenir.db", "memories", "text", "'changed'", where="id = 1") == 1
    with pytest.raises(StoreUnusable, match="is not sound"):
        export(damaged, tmp_path / "again.jsonl")
    assert list(tmp_path.glob("again*")) == []


def test_an_existing_file_is_not_overwritten(stored: Path, tmp_path: Path):
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(InvalidRequest, match="exists already"):
        export(stored, tmp_path / "kept")
    assert (tmp_path / "kept").read_text() == "mine"


def test_the_commands_report_what_they_did(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "all.jsonl"
    monkeypatch.setenv("DATA_DIR", str(Path(shutil.copytree(stored, tmp_path / "source"))))
    assert main(["export-archive", str(path)]) == 0
    exported = capsys.readouterr().out
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert json.loads(signature_of(path).read_text())["sha256"] == digest
    key = json.loads(signature_of(path).read_text())["public_key"]
    assert key in exported
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "new"))
    assert main(["import-archive", str(path), "--public-key", key]) == 0
    assert "all compared" in capsys.readouterr().out
    assert main(["import-archive", str(path)]) == 1
    assert "is not empty" in capsys.readouterr().err
